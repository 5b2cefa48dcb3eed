/* SPDX-License-Identifier: Apache-2.0 */
/* What a process has printed and not written. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "io/pty.h"
#include "stacks/printed.h"

static void test_library(void **state)
{
    (void)state;
    uint64_t start = 0;
    char *path = printed_library("7f00-7f01 r--p 00000000 fe:01 1 /lib/libcrypto.so.3\n"
                                 "7f11-7f12 r--p 00001000 fe:01 2 /lib/libc.so.6\n"
                                 "7f22-7f23 r--p 00000000 fe:01 3 /my lib/libc.so.6\n"
                                 "7f33-7f34 r--p 00000000 fe:01 4 /lib/libc.so.6\n",
                                 &start);
    assert_string_equal(path, "/my lib/libc.so.6");
    assert_int_equal(start, 0x7f22);
    free(path);
    path = printed_library("7f44-7f45 r--p 00000000 fe:01 5 /lib/libc-2.28.so\n", &start);
    assert_string_equal(path, "/lib/libc-2.28.so");
    free(path);
    assert_null(printed_library("7f00-7f01 rw-p 00000000 00:00 0\n/libc.so.6\n\nx", &start));
    assert_null(printed_library("", &start));
}

static int read_own(void *context, uint64_t address, void *out, size_t length)
{
    (void)context;
    memcpy(out, (const void *)(uintptr_t)address, length); /* NOLINT: all of them are here */
    return 0;
}

struct image {
    unsigned char file[216];
    int lock;
};

static void put(struct image *image, size_t at, uint64_t value)
{
    memcpy(image->file + at, &value, sizeof(value));
}

/* A FILE of stdout that has "text". */
static void make(struct image *image)
{
    static const char text[] = "text";
    *image = (struct image){.lock = 0};
    put(image, 0, 0xfbad2a84);
    put(image, 32, (uint64_t)(uintptr_t)text);
    put(image, 40, (uint64_t)(uintptr_t)(text + 4));
    put(image, 112, STDOUT_FILENO);
    put(image, 136, (uint64_t)(uintptr_t)&image->lock);
}

static int read_image(const struct image *image, struct buf *out, uint64_t *at, uint64_t *value)
{
    struct memory memory = {.read = read_own, .budget = MEMORY_BUDGET};
    return printed_read(&memory, (uint64_t)(uintptr_t)image->file, out, at, value);
}

static void test_file(void **state)
{
    (void)state;
    struct image image;
    struct buf out AUTO_BUF = BUF_INIT(PRINTED_MAX);
    uint64_t at = 0, value = 0, base = 0;
    make(&image);
    assert_int_equal(read_image(&image, &out, &at, &value), 0);
    assert_string_equal(buf_text(&out), "text");
    memcpy(&base, image.file + 32, sizeof(base));
    assert_int_equal(value, base);
    assert_int_equal(at, (uint64_t)(uintptr_t)image.file + 40);
}

static void expect_nothing(const struct image *image)
{
    struct buf out AUTO_BUF = BUF_INIT(PRINTED_MAX);
    uint64_t at = 0, value = 0;
    assert_int_equal(read_image(image, &out, &at, &value), -1);
}

static void test_what_is_no_file(void **state)
{
    (void)state;
    struct image image;
    make(&image);
    image.lock = 1;
    expect_nothing(&image);
    make(&image);
    put(&image, 0, 0x0bad2a84);
    expect_nothing(&image);
    make(&image);
    put(&image, 0, 0xfbad2284); /* it reads, or has not begun */
    expect_nothing(&image);
    make(&image);
    put(&image, 112, STDERR_FILENO);
    expect_nothing(&image);
    make(&image);
    memcpy(image.file + 40, image.file + 32, 8); /* nothing is unwritten */
    expect_nothing(&image);
    make(&image);
    put(&image, 40, UINT64_MAX);
    expect_nothing(&image);
}

struct process {
    int output[2], ready[2], go[2];
    pid_t pid;
};

/* It prints, waits to be told, and exits: what was taken is not written again. */
static void print_and_wait(const struct process *process, const char *text, int mode)
{
    static char room[8192];
    char byte = 0;
    dup2(process->output[1], STDOUT_FILENO);
    setvbuf(stdout, room, mode, sizeof(room));
    fputs(text, stdout);
    if (fd_write(process->ready[1], &byte, 1) != 1 || fd_read(process->go[0], &byte, 1) != 1)
        _exit(1);
    printf(" and the rest");
    exit(0);
}

/* Its output is there already. */
static void process_begin(struct process *process, const char *text, int mode)
{
    char byte = 0;
    assert_int_equal(pipe(process->ready) | pipe(process->go), 0);
    fflush(stdout);
    process->pid = fork();
    if (process->pid == 0)
        print_and_wait(process, text, mode);
    assert_true(process->pid > 0);
    fd_close(&process->output[1]);
    assert_int_equal(fd_read(process->ready[0], &byte, 1), 1);
}

static void process_end(struct process *process)
{
    char byte = 0;
    int status = -1;
    assert_int_equal(fd_write(process->go[1], &byte, 1), 1);
    assert_int_equal(waitpid(process->pid, &status, 0), process->pid);
    assert_int_equal(status, 0);
    for (int i = 0; i < 2; i++) {
        fd_close(&process->ready[i]);
        fd_close(&process->go[i]);
    }
}

static void expect_output(const struct process *process, const char *text)
{
    char got[64] = "";
    assert_int_equal(fd_read(process->output[0], got, sizeof(got) - 1), strlen(text));
    assert_string_equal(got, text);
}

static void test_process(void **state)
{
    (void)state;
    struct process process;
    assert_int_equal(pipe(process.output), 0);
    process_begin(&process, "half a line", _IOFBF);
    printed_flush(process.pid);
    printed_flush(process.pid);
    expect_output(&process, "half a line");
    process_end(&process);
    expect_output(&process, " and the rest");
    printed_flush(process.pid);
    fd_close(&process.output[0]);
}

static void test_process_with_a_terminal(void **state)
{
    (void)state;
    struct process process;
    assert_int_equal(pty_open_output(process.output, 24, 80), 0);
    process_begin(&process, "half a line", _IOLBF); /* as programs do */
    printed_flush(process.pid);
    expect_output(&process, "half a line");
    process_end(&process);
    expect_output(&process, " and the rest");
    fd_close(&process.output[0]);
}

/* It takes a part, and the process keeps the rest. */
static void test_output_with_little_room(void **state)
{
    enum { PAGE = 4096, LENGTH = 6000 };
    (void)state;
    struct process process;
    char page[PAGE], text[LENGTH + 1] = "";
    memset(page, '-', sizeof(page));
    for (int i = 0; i < LENGTH; i++)
        text[i] = (char)('a' + i % 26);
    assert_int_equal(pipe(process.output), 0);
    int pages = fcntl(process.output[0], F_GETPIPE_SZ) / PAGE;
    for (int i = 0; i + 1 < pages; i++)
        assert_int_equal(fd_write(process.output[1], page, PAGE), PAGE);
    process_begin(&process, text, _IOFBF);
    printed_flush(process.pid);
    for (int i = 0; i < pages; i++)
        assert_int_equal(fd_read(process.output[0], page, PAGE), PAGE);
    assert_memory_equal(page, text, PAGE);
    process_end(&process);
    assert_int_equal(fd_read(process.output[0], page, LENGTH - PAGE), LENGTH - PAGE);
    assert_memory_equal(page, text + PAGE, LENGTH - PAGE);
    expect_output(&process, " and the rest");
    fd_close(&process.output[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_library),
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_what_is_no_file),
        cmocka_unit_test(test_process),
        cmocka_unit_test(test_process_with_a_terminal),
        cmocka_unit_test(test_output_with_little_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
