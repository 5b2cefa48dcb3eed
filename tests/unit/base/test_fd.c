/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/mem.h"

static void test_close(void **state)
{
    (void)state;
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC), number = fd;
    errno = ENOTTY;
    fd_close(&fd);
    assert_int_equal(fd, -1);
    assert_int_equal(errno, ENOTTY);
    assert_int_equal(fcntl(number, F_GETFD), -1);
    errno = ENOTTY;
    fd_close(&fd); /* a second time it does nothing, not even an EBADF */
    assert_int_equal(errno, ENOTTY);
    {
        int scoped AUTO_FD = open("/dev/null", O_RDONLY | O_CLOEXEC);
        number = scoped;
        assert_true(fcntl(number, F_GETFD) >= 0);
    }
    assert_int_equal(fcntl(number, F_GETFD), -1);
}

static void test_what_is_made(void **state)
{
    (void)state;
    int pipe_ends[2], pair[2];
    assert_int_equal(fd_pipe(pipe_ends), 0);
    assert_int_equal(fd_socketpair(pair), 0);
    for (int i = 0; i < 2; i++) {
        assert_true((fcntl(pipe_ends[i], F_GETFD) & FD_CLOEXEC) != 0);
        assert_true((fcntl(pair[i], F_GETFD) & FD_CLOEXEC) != 0);
        assert_true((fcntl(pair[i], F_GETFL) & O_NONBLOCK) == 0);
    }
    assert_int_equal(fd_nonblock(pair[0]), 0);
    char byte;
    assert_int_equal(fd_read(pair[0], &byte, 1), -1);
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(fd_write(pair[1], "x", 1), 1);
    assert_int_equal(fd_read(pair[0], &byte, 1), 1);
    assert_int_equal(byte, 'x');
    fd_close(&pair[1]);
    assert_int_equal(fd_read(pair[0], &byte, 1), 0);
    fd_close(&pair[0]);
    fd_close(&pipe_ends[0]);
    fd_close(&pipe_ends[1]);
    assert_int_equal(fd_nonblock(-1), -1);
    assert_int_equal(errno, EBADF);
}

struct drain {
    int fd;
    size_t got;
    bool ordered;
};

static void *drain_main(void *context)
{
    struct drain *drain = context;
    unsigned char chunk[1000];
    ssize_t got = fd_read(drain->fd, chunk, sizeof(chunk));
    for (; got > 0; got = fd_read(drain->fd, chunk, sizeof(chunk))) {
        for (ssize_t i = 0; i < got; i++)
            drain->ordered = drain->ordered && chunk[i] == (drain->got + (size_t)i) % 253;
        drain->got += (size_t)got;
    }
    return NULL;
}

static void nothing(int signal)
{
    (void)signal;
}

/* More than a pipe holds, while signals without SA_RESTART come in all the time. */
static void test_write_all(void **state)
{
    (void)state;
    const size_t length = 3 << 20;
    unsigned char *bytes = malloc(length);
    for (size_t i = 0; i < length; i++)
        bytes[i] = (unsigned char)(i % 253);
    int ends[2];
    assert_int_equal(fd_pipe(ends), 0);
    struct sigaction action = {.sa_handler = nothing}, before;
    sigaction(SIGALRM, &action, &before);
    struct itimerval tick = {{0, 200}, {0, 200}}, off = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &tick, NULL);
    struct drain drain = {.fd = ends[0], .ordered = true};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, drain_main, &drain), 0);
    int result = fd_write_all(ends[1], bytes, length);
    fd_close(&ends[1]);
    pthread_join(thread, NULL);
    setitimer(ITIMER_REAL, &off, NULL);
    sigaction(SIGALRM, &before, NULL);
    assert_int_equal(result, 0);
    assert_int_equal(drain.got, length);
    assert_true(drain.ordered);
    fd_close(&ends[0]);
    free(bytes);
}

static void test_write_all_fails(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(fd_pipe(ends), 0);
    fd_close(&ends[0]);
    signal(SIGPIPE, SIG_IGN);
    assert_int_equal(fd_write_all(ends[1], "abc", 3), -1);
    assert_int_equal(errno, EPIPE);
    assert_int_equal(fd_write_all(ends[1], "", 0), 0);
    fd_close(&ends[1]);
}

static void test_read_file(void **state)
{
    (void)state;
    int fd AUTO_FD = memfd_create("file", MFD_CLOEXEC);
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    char content[40000];
    memset(content, 'q', sizeof(content));
    content[20000] = '\0';
    assert_int_equal(fd_write_all(fd, content, sizeof(content)), 0);
    AUTO_BUF struct buf out = BUF_INIT(sizeof(content) + 2);
    buf_puts(&out, "+ ");
    assert_int_equal(fd_read_file(path, &out, NULL), 0); /* exactly at the limit */
    assert_int_equal(out.length, sizeof(content) + 2);
    assert_memory_equal(buf_text(&out), "+ qqq", 5);
    assert_memory_equal(buf_text(&out) + 2, content, sizeof(content));
    AUTO_BUF struct buf small = BUF_INIT(sizeof(content) - 1);
    struct error err = ERROR_INIT;
    assert_int_equal(fd_read_file(path, &small, &err), -1);
    assert_non_null(strstr(err.text, path));
    assert_non_null(strstr(err.text, "39999"));
}

static void test_read_file_fails(void **state)
{
    (void)state;
    AUTO_BUF struct buf out = BUF_INIT(100);
    struct error err = ERROR_INIT;
    assert_int_equal(fd_read_file("/nonexistent/file", &out, &err), -1);
    assert_int_equal(err.errnum, ENOENT);
    assert_non_null(strstr(err.text, "/nonexistent/file"));
    assert_int_equal(fd_read_file("/", &out, &err), -1);
    assert_int_equal(err.errnum, EISDIR);
    assert_int_equal(out.length, 0);
    assert_int_equal(fd_read_file("/dev/null", &out, &err), 0);
    assert_int_equal(out.length, 0);
}

/* Reads from an end whose other end only the caller has open. */
static void *with_own_table(void *context)
{
    const int *ends = context;
    char byte;
    if (fd_own_table(ends[1]) == 0 && fcntl(ends[0], F_GETFD) < 0 && fcntl(ends[1], F_GETFD) >= 0 &&
        fcntl(ends[1] + 1, F_GETFD) < 0 && fcntl(2, F_GETFD) >= 0 && fd_read(0, &byte, 1) == 0 &&
        fd_write(1, "x", 1) == 1)
        return context;
    return NULL;
}

static void test_own_table(void **state)
{
    (void)state;
    int ends[2];
    pthread_t thread;
    void *result = NULL;
    assert_int_equal(fd_pipe(ends), 0);
    assert_int_equal(pthread_create(&thread, NULL, with_own_table, ends), 0);
    pthread_join(thread, &result);
    assert_ptr_equal(result, ends);
    assert_int_equal(fd_write(ends[1], "x", 1), 1); /* nothing of ours was closed */
    fd_close(&ends[0]);
    fd_close(&ends[1]);
}

/* A pipe without a writer: to open it would wait, and a device can do anything. */
static void test_open_regular(void **state)
{
    (void)state;
    char folder[] = "/tmp/hvdrun-fd-XXXXXX", byte = 0;
    assert_non_null(mkdtemp(folder));
    char *file AUTO_FREE = mem_printf("%s/file", folder),
               *pipe AUTO_FREE = mem_printf("%s/pipe", folder);
    int fd AUTO_FD = fd_open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(fd_write_all(fd, "x", 1), 0);
    assert_int_equal(mkfifo(pipe, 0600), 0);
    int again AUTO_FD = fd_open_regular(file);
    assert_int_equal(fd_read(again, &byte, 1), 1);
    assert_int_equal(byte, 'x');
    assert_int_equal(fd_open_regular(pipe), -1);
    assert_int_equal(fd_open_regular("/dev/null"), -1);
    assert_int_equal(fd_open_regular(folder), -1);
    errno = 0;
    assert_int_equal(fd_open_regular("/no/such/file"), -1);
    assert_int_equal(errno, ENOENT);
    unlink(file);
    unlink(pipe);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_close),     cmocka_unit_test(test_what_is_made),
        cmocka_unit_test(test_write_all), cmocka_unit_test(test_write_all_fails),
        cmocka_unit_test(test_read_file), cmocka_unit_test(test_read_file_fails),
        cmocka_unit_test(test_own_table), cmocka_unit_test(test_open_regular),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
