/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks of asyncio from images: of a Python that runs here, and those in tests/fuzz/corpus/stacks.
 * To make another one:
 *
 *   HVDRUN_IMAGE_PYTHON=/path/to/python HVDRUN_IMAGE_TO=FILE unit_stacks asyncio
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "../../fuzz/stack_image.h"
#include "base/fd.h"
#include "python_child.h"
#include "stacks/asyncio.h"
#include "stacks/runtime.h"

/* Two tasks wait in a coroutine of their own, one behind an asynchronous generator and a generator,
 * and one has ended. The first waits for all of them. */
#define PROGRAM                                                                     \
    "import asyncio, os, types\n"                                                   \
    "async def fetch(future):\n"                                                    \
    "    await future\n"                                                            \
    "async def worker(future):\n"                                                   \
    "    await fetch(future)\n"                                                     \
    "@types.coroutine\n"                                                            \
    "def old(future):\n"                                                            \
    "    yield from fetch(future).__await__()\n"                                    \
    "async def batches(future):\n"                                                  \
    "    await old(future)\n"                                                       \
    "    yield 1\n"                                                                 \
    "async def loader(future):\n"                                                   \
    "    async for batch in batches(future): pass\n"                                \
    "async def nothing(): pass\n"                                                   \
    "async def main():\n"                                                           \
    "    future = asyncio.get_running_loop().create_future()\n"                     \
    "    all = [asyncio.ensure_future(worker(future)) for i in range(2)]\n"         \
    "    all += [asyncio.ensure_future(c) for c in (loader(future), nothing())]\n"  \
    "    await asyncio.sleep(0.1); os.write(1, b'.'); await asyncio.gather(*all)\n" \
    "asyncio.run(main())\n"

struct found {
    int workers, loaders, mains, others;
};

/* The functions, the outermost first. */
static void take(void *context, const struct python_stack *stack)
{
    struct found *found = context;
    char text[1000] = "";
    for (size_t i = stack->count; i > 0; i--) {
        const struct python_frame *frame = &stack->frames[i - 1];
        size_t length = strlen(text);
        snprintf(text + length, sizeof(text) - length, "%s:%d ", frame->function, frame->line);
        assert_string_equal(frame->file, "/app/train.py");
    }
    if (strcmp(text, "worker:5 fetch:3 ") == 0)
        found->workers++;
    else if (strcmp(text, "loader:13 batches:10 old:8 fetch:3 ") == 0)
        found->loaders++;
    else if (strcmp(text, "main:19 ") == 0)
        found->mains++;
    else
        found->others++;
}

static void take_any(void *context, const struct python_stack *stack)
{
    (void)context;
    assert_in_range(stack->count, 1, ASYNCIO_CHAIN_MAX);
}

/* -1: it is no Python that can be read. */
static int read_tasks(struct memory *memory, uint64_t runtime, int minor,
                      void (*each)(void *context, const struct python_stack *stack), void *context)
{
    struct python python;
    struct python_thread *threads = NULL;
    size_t count = 0;
    int result = -1;
    if (python_init(&python, memory, runtime, minor) == 0 &&
        python_threads(&python, &threads, &count) == 0) {
        struct asyncio_place place = {.threads = threads, .count = count < 2 ? count : 2};
        for (size_t i = 0; i < place.count && place.loop_frame == 0; i++) {
            struct python_stack stack;
            if (python_stack_read(&python, &threads[i], &stack) == 0)
                place.loop_frame = asyncio_loop_frame(&stack);
            python_stack_destroy(&stack);
        }
        asyncio_tasks(&python, &place, each, context);
        result = 0;
    }
    free(threads);
    python_destroy(&python);
    return result;
}

static int read_mem(void *context, uint64_t address, void *out, size_t length)
{
    const int *fd = context;
    return fd_pread(*fd, out, length, (off_t)address) == (ssize_t)length ? 0 : -1;
}

static void expect(const struct found *found)
{
    assert_int_equal(found->workers, 2);
    assert_int_equal(found->loaders, 1);
    assert_int_equal(found->mains, 1);
    assert_int_equal(found->others, 0);
}

static void test_the_python_of_this_machine(void **state)
{
    (void)state;
    const char *to = getenv("HVDRUN_IMAGE_TO");
    pid_t pid = python_child_start(PROGRAM, true);
    if (pid < 0)
        skip();
    char *path AUTO_FREE = mem_printf("/proc/%d/mem", (int)pid);
    int fd AUTO_FD = fd_open(path, O_RDONLY, 0);
    struct memory memory = {read_mem, &fd, MEMORY_BUDGET};
    struct runtime_files *files = runtime_files_create();
    struct runtime runtime;
    assert_int_equal(runtime_find(files, pid, &memory, &runtime), 1);
    runtime_files_destroy(files);
    struct image_recorder recorder = {.source = &memory, .file = BUF_INIT(10 << 20)};
    image_begin(&recorder, runtime.address, runtime.minor);
    struct memory recording = {image_record, &recorder, MEMORY_BUDGET};
    struct found found = {0};
    assert_int_equal(read_tasks(&recording, runtime.address, runtime.minor, take, &found), 0);
    expect(&found);
    if (to != NULL) {
        int out AUTO_FD = fd_open(to, O_WRONLY | O_CREAT | O_TRUNC, 0644);
        assert_int_equal(fd_write_all(out, buf_text(&recorder.file), recorder.file.length), 0);
    }
    buf_destroy(&recorder.file);
    python_child_end(pid);
}

static const char *const versions[] = {"asyncio38",  "asyncio39",  "asyncio310", "asyncio311",
                                       "asyncio312", "asyncio313", "asyncio314"};

static void read_corpus(const char *name, struct buf *out)
{
    char *path AUTO_FREE =
        mem_printf("%s/tests/fuzz/corpus/stacks/%s", getenv("HVDRUN_SOURCE"), name);
    buf_clear(out);
    assert_int_equal(fd_read_file(path, out, NULL), 0);
}

static void read_image(const unsigned char *data, size_t size,
                       void (*each)(void *context, const struct python_stack *stack),
                       struct found *found)
{
    struct image image;
    if (image_parse(data, size, &image) < 0)
        return;
    struct memory memory = {image_read, &image, MEMORY_BUDGET / 16};
    (void)read_tasks(&memory, image.runtime, image.minor, each, found);
    image_destroy(&image);
}

static void test_kept_images(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
        struct buf file AUTO_BUF = BUF_INIT(1 << 20);
        struct found found = {0};
        read_corpus(versions[i], &file);
        read_image((const unsigned char *)buf_text(&file), file.length, take, &found);
        expect(&found);
    }
}

/* As in test_image.c; not each word, since these images are larger. */
static void test_torn_images(void **state)
{
    (void)state;
    static const uint64_t rubbish[] = {0, 0x31, UINT64_MAX, 0x7fffffffffff};
    for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
        struct buf file AUTO_BUF = BUF_INIT(1 << 20);
        read_corpus(versions[i], &file);
        unsigned char *bytes = (unsigned char *)file.bytes + file.start;
        for (size_t at = 24; at + 8 <= file.length; at += 8 * 11) {
            uint64_t kept = memory_u64_at(bytes + at);
            memcpy(bytes + at, &rubbish[at / 8 % 4], 8);
            read_image(bytes, file.length, take_any, NULL);
            memcpy(bytes + at, &kept, 8);
        }
        for (size_t size = 0; size < file.length; size += 997)
            read_image(bytes, size, take_any, NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_the_python_of_this_machine, python_children_end),
        cmocka_unit_test(test_kept_images),
        cmocka_unit_test(test_torn_images),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
