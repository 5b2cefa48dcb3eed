/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks/asyncio.h"

#include <stdbool.h>
#include <string.h>

#include "base/mem.h"
#include "stacks/python_layout.h"

#define TYPE_NAME_MAX 64
#define KEY_MAX 64
#define ENTRIES_MAX 4096 /* of a dict or a set */
#define WEAK_SET_MEMBERS 6

#define DICT_KEYS 32
#define DICT_VALUES 40
#define MODULE_DICT 16
#define SET_MASK 32
#define SET_TABLE 40
#define WEAKREF_OBJECT 16
#define HEAD 16 /* of each object: count of references, type */

#define TASK_BYTES 320 /* of a task, in which its coroutine is looked for */
#define STACK_MAX 4096 /* values on the stack of a frame */
#define LIST_BYTES 256 /* behind a PyThreadState, in which its list of tasks is looked for */

/* ---- Containers ------------------------------------------------------------------------------ */

/* Of CPython 3.8 to 3.13, as far as tasks need them. What cannot be read counts as not there. */

/* Is the type of that object called so? "coroutine", "set". */
static bool object_is(struct memory *memory, const struct python_layout *layout, uint64_t object,
                      const char *type)
{
    uint64_t at = 0, name_at = 0;
    char name[TYPE_NAME_MAX];
    size_t length = strlen(type) + 1;
    return memory_is_pointer(object) && length <= sizeof(name) &&
           memory_pointer(memory, object + layout->object_type, &at) == 0 && at != 0 &&
           memory_u64(memory, at + layout->type_name, &name_at) == 0 &&
           memory_read(memory, name_at, name, length) == 0 && memcmp(name, type, length) == 0;
}

static bool is_key(struct memory *memory, const struct python_layout *layout, uint64_t object,
                   const char *key)
{
    uint64_t length = 0;
    char text[KEY_MAX];
    size_t wanted = strlen(key);
    return memory_is_pointer(object) && wanted < sizeof(text) &&
           memory_u64(memory, object + layout->str_length, &length) == 0 && length == wanted &&
           memory_read(memory, object + layout->str_ascii, text, wanted) == 0 &&
           memcmp(text, key, wanted) == 0 && object_is(memory, layout, object, "str");
}

struct entries {
    uint64_t at; /* of the first */
    uint64_t count;
    size_t size, key, value; /* bytes of an entry; offsets in it */
};

/* Before 3.11: the size of the table of indices follows from that of the dict. */
static int old_entries(struct memory *memory, uint64_t keys, struct entries *out)
{
    uint64_t size = 0;
    if (memory_u64(memory, keys + 8, &size) < 0 || memory_u64(memory, keys + 32, &out->count) < 0)
        return -1;
    uint64_t width = size <= 0xff ? 1 : size <= 0xffff ? 2 : 4;
    out->at = keys + 40 + size * width;
    out->size = 24;
    return 0;
}

static int new_entries(struct memory *memory, uint64_t keys, struct entries *out)
{
    unsigned char head[32];
    if (memory_read(memory, keys, head, sizeof(head)) < 0 || head[9] > 24 || head[10] > 1)
        return -1;
    out->count = memory_u64_at(head + 24);
    out->at = keys + 32 + ((uint64_t)1 << head[9]);
    out->size = head[10] == 0 ? 24 : 16; /* all keys are text: it keeps no hashes */
    return 0;
}

static int read_entries(struct memory *memory, const struct python_layout *layout, uint64_t dict,
                        struct entries *out)
{
    uint64_t keys = 0, values = 0;
    *out = (struct entries){.at = 0};
    if (memory_pointer(memory, dict + DICT_KEYS, &keys) < 0 || keys == 0 ||
        memory_pointer(memory, dict + DICT_VALUES, &values) < 0 || values != 0)
        return -1;
    int result =
        layout->minor < 11 ? old_entries(memory, keys, out) : new_entries(memory, keys, out);
    out->key = out->size - 16;
    out->value = out->size - 8;
    return result == 0 && out->count <= ENTRIES_MAX ? 0 : -1;
}

/* The value in a dict under a short ASCII key; 0: none. The dict of a module, or alike: not one
 * that shares its keys with others. */
static uint64_t object_dict_get(struct memory *memory, const struct python_layout *layout,
                                uint64_t dict, const char *key)
{
    struct entries entries;
    if (!object_is(memory, layout, dict, "dict") ||
        read_entries(memory, layout, dict, &entries) < 0 || entries.count == 0)
        return 0;
    size_t size = (size_t)entries.count * entries.size;
    unsigned char *bytes AUTO_FREE = mem_alloc(size);
    if (memory_read(memory, entries.at, bytes, size) < 0)
        return 0;
    for (uint64_t i = 0; i < entries.count; i++) {
        const unsigned char *entry = bytes + i * entries.size;
        uint64_t value = memory_u64_at(entry + entries.value);
        if (value != 0 && is_key(memory, layout, memory_u64_at(entry + entries.key), key))
            return value;
    }
    return 0;
}

/* The dict of a module; 0: it is none. */
static uint64_t object_module_dict(struct memory *memory, const struct python_layout *layout,
                                   uint64_t module)
{
    uint64_t dict = 0;
    if (!object_is(memory, layout, module, "module") ||
        memory_pointer(memory, module + MODULE_DICT, &dict) < 0)
        return 0;
    return dict;
}

/* Where the values of an object's attributes are, in the order in which they were set; 0: nowhere.
 */
static uint64_t attribute_values(struct memory *memory, const struct python_layout *layout,
                                 uint64_t object)
{
    uint64_t at = 0;
    if (layout->minor < 11) { /* a dict that shares its keys, in the first word of the object */
        bool is_dict = memory_pointer(memory, object + HEAD, &at) == 0 && at != 0 &&
                       object_is(memory, layout, at, "dict") &&
                       memory_pointer(memory, at + DICT_VALUES, &at) == 0;
        return is_dict ? at : 0;
    }
    if (layout->minor == 11)
        return memory_pointer(memory, object - 32, &at) == 0 ? at : 0;
    if (layout->minor == 12) /* marked by its lowest bit, which is that of the byte before */
        return memory_u64(memory, object - 24, &at) == 0 && (at & 1) != 0 ? at + 1 : 0;
    return object + HEAD + 8; /* in the object itself, behind 8 bytes about them */
}

/* The set inside of a weakref.WeakSet; 0: it is none. */
static uint64_t object_weak_set(struct memory *memory, const struct python_layout *layout,
                                uint64_t object)
{
    if (!object_is(memory, layout, object, "WeakSet"))
        return 0;
    uint64_t values = attribute_values(memory, layout, object), one = 0;
    for (uint64_t i = 0; values != 0 && i < WEAK_SET_MEMBERS; i++) {
        if (memory_u64(memory, values + 8 * i, &one) == 0 && object_is(memory, layout, one, "set"))
            return one;
    }
    return 0;
}

/* Calls `each` for what the weak references in a set refer to, at most `max` of them. */
static void object_set_walk(struct memory *memory, uint64_t set, size_t max,
                            void (*each)(void *context, uint64_t object), void *context)
{
    uint64_t mask = 0, table = 0, key = 0, object = 0;
    if (memory_u64(memory, set + SET_MASK, &mask) < 0 || mask >= ENTRIES_MAX * 16 ||
        memory_pointer(memory, set + SET_TABLE, &table) < 0 || table == 0)
        return;
    for (uint64_t i = 0; i <= mask && max > 0; i++) {
        if (memory_u64(memory, table + 16 * i, &key) < 0 || !memory_is_pointer(key) ||
            memory_u64(memory, key + WEAKREF_OBJECT, &object) < 0 || !memory_is_pointer(object))
            continue;
        each(context, object);
        max--;
    }
}

/* ---- Tasks ----------------------------------------------------------------------------------- */

/* Where coroutines and frames have their members. The state says whether a coroutine is suspended:
 * it is `lowest` to `highest` then. */
struct coroutine_layout {
    uint32_t frame; /* a pointer before 3.11; the frame itself later */
    uint32_t state; /* LAYOUT_NONE: the frame itself says it */
    int lowest, highest;
    uint32_t globals; /* of a frame */
    uint32_t depth;   /* of a frame: how many values are on its stack; see top_of_stack() */
    uint32_t values;  /* of a frame: where they begin */
};

static const struct coroutine_layout layouts[] = {
    [8] = {16, LAYOUT_NONE, 0, 0, 48, 72, 64},  [9] = {16, LAYOUT_NONE, 0, 0, 48, 72, 64},
    [10] = {16, LAYOUT_NONE, 0, 0, 48, 80, 64}, [11] = {80, 75, -1, -1, 8, 64, 72},
    [12] = {72, 67, -1, -1, 24, 64, 72},        [13] = {72, 67, -2, -1, 24, 64, 72},
};

/* false: the tasks of this build are not known. */
static bool find_layout(const struct python *python, struct coroutine_layout *out)
{
    const struct python_layout *layout = &python->layout;
    if (layout->minor < LAYOUT_OLDEST || layout->minor > 14 || layout->free_threaded)
        return false;
    *out = layout->minor < 14
               ? layouts[layout->minor]
               : (struct coroutine_layout){layout->coro_frame, layout->coro_state, -2, -1,
                                           LAYOUT_NONE,        layout->frame_top,  0};
    return true;
}

uint64_t asyncio_loop_frame(const struct python_stack *stack)
{
    static const char file[] = "asyncio/base_events.py";
    for (size_t i = 0; i < stack->count; i++) {
        const struct python_frame *frame = &stack->frames[i];
        size_t length = strlen(frame->file), end = sizeof(file) - 1;
        if (length >= end && strcmp(frame->file + length - end, file) == 0)
            return frame->address;
    }
    return 0;
}

/* Where the stack of a frame ends; 0: it is empty. */
static uint64_t end_of_stack(struct python *python, const struct coroutine_layout *layout,
                             uint64_t frame)
{
    struct memory *memory = python->memory;
    uint64_t begin = frame + layout->values, end = 0;
    int32_t depth = 0;
    int minor = python->layout.minor;
    if (minor < 10 || minor > 13) /* it has a pointer behind the last one */
        return memory_pointer(memory, frame + layout->depth, &end) == 0 ? end : 0;
    if ((minor == 10 && memory_pointer(memory, frame + layout->values, &begin) < 0) ||
        memory_i32(memory, frame + layout->depth, &depth) < 0 || depth <= 0 || depth > STACK_MAX)
        return 0;
    return begin + 8 * (uint64_t)depth;
}

/* The value that the frame left on its stack: what it waits for. 0: none. */
static uint64_t top_of_stack(struct python *python, const struct coroutine_layout *layout,
                             uint64_t frame)
{
    uint64_t end = end_of_stack(python, layout, frame), top = 0;
    if (end == 0 || memory_u64(python->memory, end - 8, &top) < 0)
        return 0;
    top = python->layout.minor > 13 ? top & ~(uint64_t)LAYOUT_TAG_BITS : top;
    return memory_is_pointer(top) ? top : 0;
}

/* The frame of a coroutine that is suspended; 0: it runs, has ended, or is none. */
static uint64_t frame_of(struct python *python, const struct coroutine_layout *layout,
                         uint64_t object)
{
    uint64_t frame = 0;
    signed char state = 0;
    if (layout->state == LAYOUT_NONE)
        return memory_pointer(python->memory, object + layout->frame, &frame) == 0 ? frame : 0;
    bool suspended = memory_read(python->memory, object + layout->state, &state, 1) == 0 &&
                     state >= layout->lowest && state <= layout->highest;
    return suspended ? object + layout->frame : 0;
}

/* From what stands for a coroutine while it is awaited to the coroutine; 0: it is none. */
static uint64_t coroutine_behind(struct python *python, uint64_t object)
{
    static const char *const own[] = {"coroutine", "generator", "async_generator"};
    static const char *const wrappers[] = {"coroutine_wrapper", "async_generator_asend",
                                           "async_generator_athrow"};
    uint64_t inner = 0;
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
        if (object_is(python->memory, &python->layout, object, own[i]))
            return object;
    }
    for (size_t i = 0; i < sizeof(wrappers) / sizeof(wrappers[0]); i++) {
        if (object_is(python->memory, &python->layout, object, wrappers[i]) &&
            memory_pointer(python->memory, object + HEAD, &inner) == 0)
            return inner;
    }
    return 0;
}

struct task_walk {
    struct python *python;
    struct coroutine_layout layout;
    size_t left; /* tasks that may follow */
    void (*each)(void *context, const struct python_stack *stack);
    void *context;
};

/* The first coroutine that a task refers to is its own. Builds differ in where that is. */
static uint64_t own_coroutine(struct python *python, uint64_t task)
{
    unsigned char bytes[TASK_BYTES];
    if (memory_read(python->memory, task, bytes, sizeof(bytes)) < 0)
        return 0;
    for (size_t at = HEAD; at + 8 <= sizeof(bytes); at += 8) {
        uint64_t object = memory_u64_at(bytes + at);
        if (object_is(python->memory, &python->layout, object, "coroutine"))
            return object;
    }
    return 0;
}

static bool is_task(const struct python *python, uint64_t object)
{
    return object_is(python->memory, &python->layout, object, "_asyncio.Task");
}

static void take_task(void *context, uint64_t task)
{
    const struct task_walk *walk = context;
    struct python_frame frames[ASYNCIO_CHAIN_MAX], inner_first[ASYNCIO_CHAIN_MAX];
    size_t count = 0;
    if (!is_task(walk->python, task))
        return;
    uint64_t object = own_coroutine(walk->python, task);
    while (object != 0 && count < ASYNCIO_CHAIN_MAX) {
        uint64_t frame = frame_of(walk->python, &walk->layout, object);
        if (frame == 0 || python_frame_read(walk->python, frame, &frames[count]) < 0)
            break;
        count++;
        object = coroutine_behind(walk->python, top_of_stack(walk->python, &walk->layout, frame));
    }
    for (size_t i = 0; i < count; i++)
        inner_first[i] = frames[count - 1 - i];
    if (count > 0)
        walk->each(walk->context, &(struct python_stack){.frames = inner_first, .count = count});
}

/* Up to 3.13: one set has the tasks of all event loops. */
static void walk_set(struct task_walk *walk, uint64_t loop_frame)
{
    static const char *const names[] = {"_scheduled_tasks", "_all_tasks"};
    struct memory *memory = walk->python->memory;
    const struct python_layout *layout = &walk->python->layout;
    uint64_t globals = 0, set = 0;
    if (loop_frame == 0 || memory_pointer(memory, loop_frame + walk->layout.globals, &globals) < 0)
        return;
    uint64_t module = object_dict_get(memory, layout, globals, "tasks");
    uint64_t dict = object_module_dict(memory, layout, module);
    for (size_t i = 0; set == 0 && i < sizeof(names) / sizeof(names[0]); i++)
        set = object_weak_set(memory, layout, object_dict_get(memory, layout, dict, names[i]));
    if (set != 0)
        object_set_walk(memory, set, walk->left, take_task, walk);
}

/* From the links in a task to the task, which is the nearest one before; 0: it is none. Builds
 * differ in where the links are. */
static uint64_t links_in_task(const struct python *python, uint64_t links)
{
    uint64_t offset = HEAD;
    while (offset < TASK_BYTES && !is_task(python, links - offset))
        offset += 8;
    return offset < TASK_BYTES ? offset : 0;
}

/* Whether a list of tasks begins here: the first task leads back. */
static bool is_list(struct python *python, uint64_t head, uint64_t first, uint64_t last)
{
    uint64_t before_first = 0, after_last = 0;
    return first != head && memory_is_pointer(first) && memory_is_pointer(last) &&
           memory_u64(python->memory, first + 8, &before_first) == 0 && before_first == head &&
           memory_u64(python->memory, last, &after_last) == 0 && after_last == head;
}

static void walk_list(struct task_walk *walk, uint64_t head, uint64_t first, uint64_t offset)
{
    for (uint64_t at = first; at != 0 && at != head && walk->left > 0; walk->left--) {
        take_task(walk, at - offset);
        if (memory_pointer(walk->python->memory, at, &at) < 0)
            return;
    }
}

/* From 3.14 on: the tasks that were made in this thread. */
static void walk_thread(struct task_walk *walk, const struct python_thread *thread)
{
    struct python *python = walk->python;
    unsigned char bytes[LIST_BYTES];
    uint64_t begin = thread->address + python->layout.thread_size;
    if (memory_read(python->memory, begin, bytes, sizeof(bytes)) < 0)
        return;
    for (size_t at = 0; at + 16 <= sizeof(bytes); at += 8) {
        uint64_t first = memory_u64_at(bytes + at), last = memory_u64_at(bytes + at + 8);
        if (!is_list(python, begin + at, first, last))
            continue;
        uint64_t offset = links_in_task(python, first);
        if (offset != 0) {
            walk_list(walk, begin + at, first, offset);
            return;
        }
    }
}

void asyncio_tasks(struct python *python, const struct asyncio_place *place,
                   void (*each)(void *context, const struct python_stack *stack), void *context)
{
    struct task_walk walk = {
        .python = python, .left = ASYNCIO_TASKS_MAX, .each = each, .context = context};
    if (!find_layout(python, &walk.layout))
        return;
    if (python->layout.minor < 14)
        walk_set(&walk, place->loop_frame);
    for (size_t i = 0; python->layout.minor >= 14 && i < place->count; i++)
        walk_thread(&walk, &place->threads[i]);
}
