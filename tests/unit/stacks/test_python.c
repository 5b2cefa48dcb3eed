/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Python 3.14, ordinary and without the GIL, as memory images that the test builds. Each image is a
 * process of one interpreter, with the numbers that live interpreters have. Then follow images that
 * no interpreter would make.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "stacks/python.h"

#define BASE 0x10000u
#define SIZE 0x40000u
#define RUNTIME BASE
#define INTERP (BASE + 0x1000)
#define GIL (BASE + 0x6000)
#define HEAP (BASE + 0x10000)

struct world {
    unsigned char *bytes;
    uint64_t next; /* the free address */
    bool free_threaded;
    uint64_t code_type, str_type, bytes_type;
    int reads;
    /* after this many reads (0: never) the word at `torn` changes */
    int tear_after;
    uint64_t torn, torn_value;
};

static int read_world(void *context, uint64_t address, void *out, size_t length)
{
    struct world *world = context;
    if (++world->reads == world->tear_after)
        memcpy(world->bytes + (world->torn - BASE), &world->torn_value, 8);
    if (address < BASE || address - BASE > SIZE || length > SIZE - (address - BASE))
        return -1;
    memcpy(out, world->bytes + (address - BASE), length);
    return 0;
}

static void put(struct world *world, uint64_t address, uint64_t value)
{
    memcpy(world->bytes + (address - BASE), &value, 8);
}

static uint64_t take(struct world *world, size_t size)
{
    uint64_t address = world->next;
    world->next += (size + 15) / 16 * 16;
    assert_true(world->next <= BASE + SIZE);
    return address;
}

/* Where 3.14 says where things are, and what it says there, in both builds. */
static const struct {
    unsigned at;
    uint64_t ordinary, free_threaded;
} table[] = {
    {16, 0, 1},       {24, 400000, 400000}, {40, 808, 808},  {48, 300000, 300000}, {64, 7272, 7272},
    {72, 7344, 7344}, {120, 16, 16},        {128, 600, 600}, {144, 616, 616},      {152, 608, 608},
    {176, 800, 800},  {192, 8, 8},          {200, 16, 16},   {208, 72, 72},        {216, 152, 152},
    {224, 160, 160},  {248, 88, 96},        {256, 8, 8},     {264, 0, 0},          {272, 56, 56},
    {288, 74, 78},    {304, 0, 72},         {312, 216, 240}, {320, 112, 128},      {328, 120, 136},
    {336, 128, 144},  {344, 136, 152},      {352, 68, 84},   {384, 208, 232},      {392, 0, 184},
    {400, 16, 32},    {408, 8, 24},         {416, 400, 420}, {424, 24, 40},        {592, 40, 56},
    {600, 16, 32},    {608, 32, 48},        {616, 64, 72},   {624, 32, 48},        {632, 16, 32},
    {640, 40, 56},
};

static uint64_t described(const struct world *world, unsigned at)
{
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (table[i].at == at)
            return world->free_threaded ? table[i].free_threaded : table[i].ordinary;
    }
    fail();
    return 0;
}

static uint64_t new_type(struct world *world, const char *name)
{
    uint64_t type = take(world, 128), text = take(world, 16);
    memcpy(world->bytes + (text - BASE), name, strlen(name) + 1);
    put(world, type + described(world, 424), text);
    return type;
}

/* `kind` bytes a character; the characters are those of `text`, with `plus` added to each. */
static uint64_t new_str(struct world *world, const char *text, unsigned kind, uint32_t plus)
{
    size_t length = strlen(text);
    bool ascii = kind == 1 && plus == 0;
    uint64_t object = take(world, 128 + 4 * length);
    uint32_t state = kind << 2 | 1u << 5 | (ascii ? 1u << 6 : 0);
    put(world, object + described(world, 408), world->str_type);
    put(world, object + described(world, 632), length);
    put(world, object + described(world, 624), world->free_threaded ? state << 6 : state);
    uint64_t data = object + described(world, 640) + (ascii ? 0 : 16);
    for (size_t i = 0; i < length; i++) {
        uint32_t point = (unsigned char)text[i] + plus;
        memcpy(world->bytes + (data - BASE) + i * kind, &point, kind);
    }
    return object;
}

static uint64_t new_code(struct world *world, uint64_t name, uint64_t file)
{
    static const unsigned char lines[] = {0x80, 0x00, 0xd8, 0x09, 0x0a,
                                          0xf1, 0x03, 0x01, 0x0a, 0x0b};
    uint64_t code = take(world, 512), bytes = take(world, 128);
    put(world, bytes + described(world, 408), world->bytes_type);
    put(world, bytes + described(world, 600), sizeof(lines));
    memcpy(world->bytes + (bytes + described(world, 608) - BASE), lines, sizeof(lines));
    put(world, code + described(world, 408), world->code_type);
    put(world, code + described(world, 320), file);
    put(world, code + described(world, 336), name);
    put(world, code + described(world, 344), bytes);
    put(world, code + described(world, 352), 7);
    return code;
}

static uint64_t new_frame(struct world *world, uint64_t back, uint64_t code, uint64_t offset,
                          unsigned owner)
{
    uint64_t frame = take(world, 128);
    put(world, frame + described(world, 256), back);
    put(world, frame + described(world, 264), code | 1); /* a tagged reference */
    put(world, frame + described(world, 272), code + described(world, 384) + offset);
    world->bytes[frame + described(world, 288) - BASE] = (unsigned char)owner;
    return frame;
}

static uint64_t new_thread(struct world *world, uint64_t frame, uint64_t native)
{
    uint64_t thread = take(world, 256), head = INTERP + described(world, 72), before;
    memcpy(&before, world->bytes + (head - BASE), 8);
    put(world, thread + 8, before);
    put(world, thread + 16, INTERP);
    put(world, thread + 72, frame);
    put(world, thread + 160, native);
    put(world, head, thread);
    return thread;
}

static struct world *create(bool free_threaded)
{
    struct world *world = mem_alloc(sizeof(*world));
    *world = (struct world){.bytes = mem_alloc(SIZE), .next = HEAP, .free_threaded = free_threaded};
    memcpy(world->bytes, "xdebugpy", 8);
    put(world, RUNTIME + 8, 0x030e00f0);
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        put(world, RUNTIME + table[i].at, described(world, table[i].at));
    put(world, RUNTIME + 808, INTERP);
    put(world, INTERP + 16, GIL);
    world->code_type = new_type(world, "code");
    world->str_type = new_type(world, "str");
    world->bytes_type = new_type(world, "bytes");
    return world;
}

static void destroy(struct world *world)
{
    free(world->bytes);
    free(world);
}

struct reading {
    struct memory memory;
    struct python python;
    struct python_thread *threads;
    size_t count;
};

static void begin(struct world *world, struct reading *reading)
{
    reading->memory = (struct memory){read_world, world, MEMORY_BUDGET};
    reading->threads = NULL;
    reading->count = 0;
    assert_int_equal(python_init(&reading->python, &reading->memory, RUNTIME, 14), 0);
}

static void end(struct reading *reading)
{
    free(reading->threads);
    python_destroy(&reading->python);
}

static void begin_threads(struct world *world, struct reading *reading, size_t wanted)
{
    begin(world, reading);
    assert_int_equal(python_threads(&reading->python, &reading->threads, &reading->count), 0);
    assert_int_equal(reading->count, wanted);
}

static void expect_frame(const struct stack_frame *frame, const char *function, int line)
{
    assert_string_equal(frame->function, function);
    assert_string_equal(frame->file, "/app/train.py");
    assert_int_equal(frame->line, line);
}

static void test_both_builds(void **state)
{
    (void)state;
    for (int free_threaded = 0; free_threaded < 2; free_threaded++) {
        struct world *world = create(free_threaded == 1);
        uint64_t file = new_str(world, "/app/train.py", 1, 0);
        uint64_t outer = new_code(world, new_str(world, "main", 1, 0), file);
        uint64_t inner = new_code(world, new_str(world, "abc", 2, 0x400), file);
        uint64_t bottom = new_frame(world, 0, outer, 2, 0);
        uint64_t shim = new_frame(world, bottom, 0, 0, 3);
        uint64_t top = new_frame(world, shim, inner, 6, 1);
        uint64_t thread = new_thread(world, top, 4711);
        new_thread(world, 0, 4712);
        put(world, GIL + 8, thread);
        put(world, GIL + 16, 1);
        if (free_threaded == 1) { /* the inner frame runs the thread's copy of its instructions */
            uint64_t copies = take(world, 64), copy = take(world, 64);
            put(world, inner + described(world, 392), copies);
            put(world, copies + 8 + 16, copy);
            put(world, top + described(world, 304) / 8 * 8, 2);
            world->bytes[top + described(world, 288) - BASE] = 1;
            put(world, top + described(world, 272), copy + 6);
        }
        struct reading reading;
        struct python_stack stack;
        begin_threads(world, &reading, 2);
        assert_int_equal(reading.threads[0].native, 4711);
        assert_int_equal(reading.threads[0].holds_gil, free_threaded == 0);
        assert_false(reading.threads[1].holds_gil);
        assert_int_equal(python_stack_read(&reading.python, &reading.threads[0], &stack), 0);
        assert_int_equal(stack.count, 2);
        expect_frame(&stack.frames[0], "\xd1\xa1\xd1\xa2\xd1\xa3", 7);
        expect_frame(&stack.frames[1], "main", 8);
        python_stack_destroy(&stack);
        assert_int_equal(python_stack_read(&reading.python, &reading.threads[1], &stack), 0);
        assert_int_equal(stack.count, 0);
        python_stack_destroy(&stack);
        end(&reading);
        destroy(world);
    }
}

/* One thread with one frame of a function with this name. Returns the result of reading it. */
static int read_one(struct world *world, uint64_t name, struct python_stack *stack,
                    struct reading *reading)
{
    uint64_t code = new_code(world, name, new_str(world, "/app/train.py", 1, 0));
    new_thread(world, new_frame(world, 0, code, 0, 0), 1);
    begin_threads(world, reading, 1);
    return python_stack_read(&reading->python, &reading->threads[0], stack);
}

static void test_names(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        unsigned kind;
        uint32_t plus;
        const char *wanted; /* NULL: refused */
    } names[] = {
        {"step", 1, 0, "step"},
        {"", 1, 0, ""},
        {"a\x1b[31m\n", 1, 0, "a?[31m?"},
        {"a", 1, 0x80, "\xc3\xa1"},
        {"\x01", 1, 0x80, "?"},
        {"a", 2, 0xd800, "?"},
        {"a", 4, 0x1f600, "\xf0\x9f\x99\xa1"},
        {"a", 4, 0x110000, "?"},
        {"a", 3, 0, NULL},
        {"a", 0, 0, NULL},
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct world *world = create(false);
        struct reading reading;
        struct python_stack stack;
        uint64_t name = new_str(world, names[i].text, names[i].kind, names[i].plus);
        int result = read_one(world, name, &stack, &reading);
        assert_int_equal(result, names[i].wanted != NULL ? 0 : -1);
        if (result == 0)
            assert_string_equal(stack.frames[0].function, names[i].wanted);
        python_stack_destroy(&stack);
        end(&reading);
        destroy(world);
    }
}

static void test_impossible_objects(void **state)
{
    (void)state;
    for (int wrong = 0; wrong < 6; wrong++) {
        struct world *world = create(false);
        uint64_t name = new_str(world, "step", 1, 0);
        uint64_t code = new_code(world, name, new_str(world, "x.py", 1, 0));
        uint64_t frame = new_frame(world, 0, code, 0, 0);
        new_thread(world, frame, 1);
        switch (wrong) {
        case 0: put(world, name + 16, (uint64_t)1 << 40); break; /* its length */
        case 1: put(world, name + 8, world->bytes_type); break;  /* its type */
        case 2: put(world, code + 136, name); break;             /* not a line table */
        case 3: put(world, frame + 56, code + 208 + 3); break;   /* inside an instruction */
        case 4: put(world, frame + 56, code - 4096); break;      /* before the code */
        case 5: world->bytes[frame + 74 - BASE] = 5; break;      /* owned by nobody */
        }
        struct reading reading;
        struct python_stack stack;
        begin_threads(world, &reading, 1);
        assert_int_equal(python_stack_read(&reading.python, &reading.threads[0], &stack), -1);
        assert_null(stack.frames);
        end(&reading);
        destroy(world);
    }
}

static void test_endless_lists(void **state)
{
    (void)state;
    struct world *world = create(false);
    uint64_t code =
        new_code(world, new_str(world, "f", 1, 0), new_str(world, "/app/train.py", 1, 0));
    uint64_t frame = new_frame(world, 0, code, 0, 0), shim = new_frame(world, 0, 0, 0, 3);
    put(world, frame + 8, frame);
    put(world, shim + 8, shim);
    uint64_t first = new_thread(world, frame, 1), second = new_thread(world, shim, 2);
    struct reading reading;
    struct python_stack stack;
    begin_threads(world, &reading, 2);
    assert_int_equal(python_stack_read(&reading.python, &reading.threads[0], &stack), 0);
    assert_int_equal(stack.count, PYTHON_FRAMES_MAX);
    assert_true(stack.cut);
    python_stack_destroy(&stack);
    assert_int_equal(python_stack_read(&reading.python, &reading.threads[1], &stack), 0);
    assert_int_equal(stack.count, 0);
    python_stack_destroy(&stack);
    end(&reading);
    put(world, first + 8, second); /* the last thread is followed by the first one */
    put(world, INTERP + 7272, INTERP);
    begin_threads(world, &reading, PYTHON_THREADS_MAX);
    end(&reading);
    destroy(world);
}

/* The block of a thread was freed, and is something else now. */
static void test_a_list_that_changes(void **state)
{
    (void)state;
    struct world *world = create(false);
    struct reading reading;
    uint64_t thread = new_thread(world, 0, 1);
    put(world, thread + 16, INTERP + 8);
    begin(world, &reading);
    assert_int_equal(python_threads(&reading.python, &reading.threads, &reading.count), -1);
    assert_null(reading.threads);
    world->tear_after = world->reads + 10;
    world->torn = thread + 16;
    world->torn_value = INTERP;
    assert_int_equal(python_threads(&reading.python, &reading.threads, &reading.count), 0);
    assert_int_equal(reading.count, 1);
    end(&reading);
    destroy(world);
}

/* A function returns while its frames are read: the two readings differ, and the third is right. */
static void test_a_stack_that_changes(void **state)
{
    (void)state;
    for (int after = 1; after < 40; after++) {
        struct world *world = create(false);
        uint64_t file = new_str(world, "/app/train.py", 1, 0);
        uint64_t outer = new_code(world, new_str(world, "outer", 1, 0), file);
        uint64_t inner = new_code(world, new_str(world, "inner", 1, 0), file);
        uint64_t bottom = new_frame(world, 0, outer, 0, 0);
        uint64_t thread = new_thread(world, new_frame(world, bottom, inner, 0, 0), 1);
        struct reading reading;
        struct python_stack stack;
        begin_threads(world, &reading, 1);
        world->tear_after = world->reads + after;
        world->torn = thread + 72;
        world->torn_value = bottom;
        assert_int_equal(python_stack_read(&reading.python, &reading.threads[0], &stack), 0);
        assert_true(stack.count == 1 || stack.count == 2);
        expect_frame(&stack.frames[stack.count - 1], "outer", 7);
        if (stack.count == 2)
            expect_frame(&stack.frames[0], "inner", 7);
        python_stack_destroy(&stack);
        end(&reading);
        destroy(world);
    }
}

static void test_a_budget(void **state)
{
    (void)state;
    struct world *world = create(false);
    struct reading reading;
    struct python_stack stack;
    assert_int_equal(read_one(world, new_str(world, "f", 1, 0), &stack, &reading), 0);
    python_stack_destroy(&stack);
    reading.memory.budget = 500;
    int reads = world->reads;
    assert_int_equal(python_stack_read(&reading.python, &reading.threads[0], &stack), -1);
    assert_true(world->reads - reads < 8);
    end(&reading);
    destroy(world);
}

static int init_with(struct world *world, int minor)
{
    struct memory memory = {read_world, world, MEMORY_BUDGET};
    struct python python;
    int result = python_init(&python, &memory, RUNTIME, minor);
    python_destroy(&python);
    return result;
}

static void test_unknown_layouts(void **state)
{
    (void)state;
    static const uint64_t at[] = {0, 8, 248, 256, 272, 312, 640, 128};
    struct world *world = create(false);
    assert_int_equal(init_with(world, 14), 0);
    assert_int_equal(init_with(world, 13), -1); /* the table says 3.14 */
    assert_int_equal(init_with(world, 15), -1);
    assert_int_equal(init_with(world, 7), -1);
    assert_int_equal(init_with(world, -1), -1);
    for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
        uint64_t kept = memory_u64_at(world->bytes + at[i]);
        put(world, RUNTIME + at[i], (uint64_t)1 << 33);
        assert_int_equal(init_with(world, 14), -1);
        put(world, RUNTIME + at[i], kept);
    }
    destroy(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_builds),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_impossible_objects),
        cmocka_unit_test(test_endless_lists),
        cmocka_unit_test(test_a_list_that_changes),
        cmocka_unit_test(test_a_stack_that_changes),
        cmocka_unit_test(test_a_budget),
        cmocka_unit_test(test_unknown_layouts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
