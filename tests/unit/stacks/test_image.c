/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks from images: those of a Python that runs here, and those in tests/fuzz/corpus/stacks, of
 * all versions that were at hand. To make another one:
 *
 *   HVDRUN_IMAGE_PYTHON=/path/to/python HVDRUN_IMAGE_TO=FILE unit_stacks image
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "../../fuzz/stack_image.h"
#include "base/fd.h"
#include "python_child.h"
#include "stacks/python.h"
#include "stacks/runtime.h"

static int read_mem(void *context, uint64_t address, void *out, size_t length)
{
    const int *fd = context;
    return fd_pread(*fd, out, length, (off_t)address) == (ssize_t)length ? 0 : -1;
}

/* The recorded image of a child that hangs. false: no Python is here. */
static bool record(struct buf *file)
{
    pid_t pid = python_child_start(PYTHON_PROGRAM, true);
    if (pid < 0)
        return false;
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
    struct python target;
    struct python_thread *threads = NULL;
    struct python_stack stack;
    size_t count = 0;
    assert_int_equal(python_init(&target, &recording, runtime.address, runtime.minor), 0);
    assert_int_equal(python_threads(&target, &threads, &count), 0);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(python_stack_read(&target, &threads[i], &stack), 0);
        python_stack_destroy(&stack);
    }
    free(threads);
    python_destroy(&target);
    python_child_end(pid);
    *file = recorder.file;
    return true;
}

static void expect_frame(const struct stack_frame *frame, const char *function, int line)
{
    assert_string_equal(frame->function, function);
    assert_string_equal(frame->file, "/app/train.py");
    assert_int_equal(frame->line, line);
}

/* Of an image of the program in python_child.h. */
static void expect_stacks(const struct buf *file)
{
    struct image image;
    struct python target;
    struct python_thread *threads = NULL;
    struct python_stack stack;
    size_t count = 0;
    assert_int_equal(image_parse((const unsigned char *)buf_text(file), file->length, &image), 0);
    struct memory memory = {image_read, &image, MEMORY_BUDGET};
    assert_int_equal(python_init(&target, &memory, image.runtime, image.minor), 0);
    assert_int_equal(python_threads(&target, &threads, &count), 0);
    assert_int_equal(count, 2);
    assert_true(threads[0].native > 0 && threads[1].native > threads[0].native);
    assert_false(threads[0].holds_gil || threads[1].holds_gil);
    assert_int_equal(python_stack_read(&target, &threads[0], &stack), 0);
    assert_int_equal(stack.count, 4);
    /* 3.8 and later give the line of the call, and not that of its arguments */
    expect_frame(&stack.frames[0], "inner", 8);
    expect_frame(&stack.frames[1], "outer_\xc3\xa9", 10);
    expect_frame(&stack.frames[2], "<module>", 12);
    assert_string_equal(stack.frames[3].file, "<string>");
    python_stack_destroy(&stack);
    assert_int_equal(python_stack_read(&target, &threads[1], &stack), 0);
    assert_int_equal(stack.count, 1);
    expect_frame(&stack.frames[0], "wait", 4);
    python_stack_destroy(&stack);
    free(threads);
    python_destroy(&target);
    image_destroy(&image);
}

static void test_the_python_of_this_machine(void **state)
{
    (void)state;
    struct buf file;
    if (!record(&file))
        skip();
    const char *to = getenv("HVDRUN_IMAGE_TO");
    if (to != NULL) {
        int fd AUTO_FD = fd_open(to, O_WRONLY | O_CREAT | O_TRUNC, 0644);
        assert_int_equal(fd_write_all(fd, buf_text(&file), file.length), 0);
    }
    expect_stacks(&file);
    buf_destroy(&file);
}

static bool read_corpus(const char *name, struct buf *out)
{
    char *path AUTO_FREE =
        mem_printf("%s/tests/fuzz/corpus/stacks/%s", getenv("HVDRUN_SOURCE"), name);
    buf_clear(out);
    return fd_read_file(path, out, NULL) == 0;
}

static const char *const versions[] = {"python38",  "python39",  "python310", "python311",
                                       "python312", "python313", "python314"};

static void test_kept_images(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
        struct buf file AUTO_BUF = BUF_INIT(1 << 20);
        assert_true(read_corpus(versions[i], &file));
        expect_stacks(&file);
    }
}

/* Whatever the image says, the walk ends, and what comes out is text. */
static void walk(const unsigned char *data, size_t size)
{
    struct image image;
    struct python target;
    struct python_thread *threads = NULL;
    size_t count = 0;
    if (image_parse(data, size, &image) < 0)
        return;
    struct memory memory = {image_read, &image, MEMORY_BUDGET / 16};
    if (python_init(&target, &memory, image.runtime, image.minor) == 0 &&
        python_threads(&target, &threads, &count) == 0) {
        assert_true(count <= PYTHON_THREADS_MAX);
        for (size_t i = 0; i < count && i < 4; i++) {
            struct python_stack stack;
            if (python_stack_read(&target, &threads[i], &stack) == 0)
                assert_true(stack.count <= PYTHON_FRAMES_MAX);
            python_stack_destroy(&stack);
        }
    }
    free(threads);
    python_destroy(&target);
    image_destroy(&image);
}

/* Each word in turn is what a freed or reused block would hold. */
static void test_torn_images(void **state)
{
    (void)state;
    static const uint64_t rubbish[] = {0, 0x31, UINT64_MAX, 0x7fffffffffff};
    for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
        struct buf file AUTO_BUF = BUF_INIT(1 << 20);
        assert_true(read_corpus(versions[i], &file));
        unsigned char *bytes = (unsigned char *)file.bytes + file.start;
        for (size_t at = 24; at + 8 <= file.length; at += 8) {
            uint64_t kept = memory_u64_at(bytes + at);
            memcpy(bytes + at, &rubbish[at / 8 % 4], 8);
            walk(bytes, file.length);
            memcpy(bytes + at, &kept, 8);
        }
        for (size_t size = 0; size < file.length; size += 61)
            walk(bytes, size);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_python_of_this_machine),
        cmocka_unit_test(test_kept_images),
        cmocka_unit_test(test_torn_images),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
