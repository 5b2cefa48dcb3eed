/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "node/usage.h"
#include "unit.h"

static bool read_of(pid_t pid, struct activity *out)
{
    struct descendants_table *processes = descendants_table_read(1000);
    bool there = activity_read(processes, pid, true, out);
    descendants_table_destroy(processes);
    return there;
}

static bool read_own(struct activity *out)
{
    return read_of(getpid(), out);
}

/* What this process does, and what a child of it did, counts. */
static void test_own_use(void **state)
{
    (void)state;
    struct activity before, after;
    char bytes[4096];
    int ends[2];
    assert_true(read_own(&before));
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < 16; i++) {
            memset(bytes, i, sizeof(bytes));
            if (write(ends[1], bytes, sizeof(bytes)) < 0)
                _exit(1);
        }
        int64_t until = unit_limit_ms(30000);
        struct activity own = {.cpu_us = 0};
        while (own.cpu_us < 50000 && !unit_is_over(until))
            read_own(&own);
        _exit(0);
    }
    for (int i = 0; i < 16; i++)
        assert_int_equal(read(ends[0], bytes, sizeof(bytes)), (ssize_t)sizeof(bytes));
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_true(read_own(&after));
    assert_true(after.cpu_us >= before.cpu_us + 50000);
    assert_true(after.io_bytes >= before.io_bytes + 2 * 16 * sizeof(bytes));
    assert_true(after.faults > before.faults);
    assert_true(after.waits > before.waits);
    assert_false(after.debugged);
    close(ends[0]);
    close(ends[1]);
}

static void test_new_memory(void **state)
{
    (void)state;
    struct activity before, after;
    size_t size = (size_t)8 << 20;
    assert_true(read_own(&before));
    char *bytes = mem_alloc(size);
    for (size_t i = 0; i < size; i += 4096)
        ((volatile char *)bytes)[i] = 1;
    assert_true(read_own(&after));
    assert_true(after.faults >= before.faults + 2); /* with huge pages, only a few */
    free(bytes);
}

static void test_a_debugger(void **state)
{
    (void)state;
    struct activity usage;
    pid_t child = fork();
    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        raise(SIGSTOP);
        _exit(0);
    }
    assert_int_equal(waitpid(child, NULL, WUNTRACED), child);
    assert_true(read_of(child, &usage));
    assert_true(usage.debugged);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_false(read_of(child, &usage));
}

/* A child that waits for data, in one of these ways, gets some. */
static void wait_for_data(int fd, int way)
{
    struct pollfd one = {.fd = fd, .events = POLLIN};
    char byte;
    fd_set set;
    for (;;) {
        FD_ZERO(&set);
        FD_SET(fd, &set);
        if (way == 1)
            poll(&one, 1, -1);
        else if (way == 2)
            select(fd + 1, &set, NULL, NULL, NULL);
        if ((way == 3 ? recv(fd, &byte, 1, 0) : read(fd, &byte, 1)) != 1)
            _exit(0);
    }
}

static void test_data(void **state)
{
    (void)state;
    for (int way = 0; way < 4; way++) {
        struct activity before = {.receivers = 0}, after;
        int ends[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
        pid_t child = fork();
        if (child == 0) {
            close(ends[1]);
            wait_for_data(ends[0], way);
        }
        close(ends[0]);
        while (before.receivers == 0)
            assert_true(read_of(child, &before));
        assert_int_equal(write(ends[1], "x", 1), 1);
        do
            assert_true(read_of(child, &after));
        while (after.receptions == before.receptions || after.receivers == 0);
        /* It sleeps again. Its time may have been read before it woke. */
        assert_true(read_of(child, &after));
        assert_true(after.receivers == before.receivers);
        assert_true(after.receptions > before.receptions);
        assert_true(after.main_ns > before.main_ns || after.main_ns == 0);
        close(ends[1]);
        waitpid(child, NULL, 0);
    }
}

/* Short time-outs, and no data: those wake by themselves. */
static void test_no_data(void **state)
{
    (void)state;
    struct activity now = {.waits = 0};
    pid_t child = fork();
    while (child == 0)
        unit_pause();
    while (now.waits < 50) {
        assert_true(read_of(child, &now));
        assert_int_equal(now.receivers, 0);
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

static struct tcp_bytes read_tcp(pid_t pid)
{
    struct descendants_table *processes = descendants_table_read(1000);
    size_t files = 1000;
    struct tcp_bytes bytes, few;
    while (tcp_bytes_read(processes, pid, &files, &bytes) != NULL) { /* until all is acknowledged */
        files = 1000;
        unit_pause();
    }
    assert_true(files < 1000);
    files = 1; /* there are more */
    assert_non_null(strstr(tcp_bytes_read(processes, pid, &files, &few), "too many open files"));
    descendants_table_destroy(processes);
    return bytes;
}

static uint64_t tcp_bytes(pid_t pid)
{
    return read_tcp(pid).all;
}

/* Without this call, the bytes of TCP cannot be seen. */
static void need_pidfd_getfd(void)
{
    if (syscall(438, -1, 0, 0) < 0 && errno != EBADF) /* pidfd_getfd() */
        skip();
}

/* Two ends of a connection within this machine. */
static void connect_ends(int ends[2])
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    int door = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(door, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(door, 1), 0);
    assert_int_equal(getsockname(door, (struct sockaddr *)&address, &length), 0);
    ends[0] = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(ends[0], (struct sockaddr *)&address, sizeof(address)), 0);
    ends[1] = accept(door, NULL, NULL);
    assert_true(ends[1] >= 0);
    close(door);
}

/* Sockets' own calls do not count as read() and write(). */
static void test_bytes_of_tcp(void **state)
{
    (void)state;
    struct activity before, after;
    char bytes[4096] = "";
    int ends[2], pipes[2];
    need_pidfd_getfd();
    connect_ends(ends);
    assert_int_equal(pipe(pipes), 0);
    uint64_t none = tcp_bytes(getpid());
    assert_true(read_own(&before));
    assert_int_equal(send(ends[0], bytes, sizeof(bytes), 0), (ssize_t)sizeof(bytes));
    assert_int_equal(recv(ends[1], bytes, sizeof(bytes), MSG_WAITALL), (ssize_t)sizeof(bytes));
    assert_true(read_own(&after));
    uint64_t some = tcp_bytes(getpid()); /* what was sent may not be acknowledged yet */
    assert_true(some - none >= sizeof(bytes) && some - none <= 2 * sizeof(bytes));
    pid_t child = fork(); /* it has the same files */
    if (child == 0)
        pause();
    assert_true(tcp_bytes(getpid()) >= 2 * some);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(write(pipes[1], bytes, sizeof(bytes)), (ssize_t)sizeof(bytes));
    assert_true(tcp_bytes(getpid()) - none <= 2 * sizeof(bytes));
    for (int i = 0; i < 2; i++) {
        close(ends[i]);
        close(pipes[i]);
    }
    assert_int_equal(tcp_bytes(getpid()), 0);
}

static void carry(const int ends[2], size_t count)
{
    char bytes[4096] = "";
    assert_int_equal(send(ends[0], bytes, count, 0), (ssize_t)count);
    assert_int_equal(recv(ends[1], bytes, count, MSG_WAITALL), (ssize_t)count);
}

/* Ranks that hang go on with heartbeats. */
static void test_heartbeats_are_no_data(void **state)
{
    (void)state;
    int ends[2];
    need_pidfd_getfd();
    connect_ends(ends);
    for (int i = 0; i < 50; i++)
        carry(ends, 100);
    assert_int_equal(read_tcp(getpid()).data, 0);
    for (int i = 0; i < 50; i++)
        carry(ends, 4096);
    assert_in_range(read_tcp(getpid()).data, 50 * 3000, 50 * 4096);
    close(ends[0]);
    close(ends[1]);
}

/* What is cut off, or cannot be seen, may be elsewhere in the next look. */
static void test_data_that_is_not_seen_whole(void **state)
{
    (void)state;
    int ends[2];
    need_pidfd_getfd();
    connect_ends(ends);
    for (int i = 0; i < 50; i++)
        carry(ends, 4096);
    pid_t below = fork(); /* it has the same files, and keeps them */
    if (below == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    size_t all = 1000, files;
    struct tcp_bytes bytes = read_tcp(getpid());
    assert_false(bytes.partial);
    assert_true(bytes.data > 0);
    struct descendants_table *processes = descendants_table_read(1000);
    files = all;
    tcp_bytes_read(processes, getpid(), &files, &bytes);
    all -= files;
    for (int i = 0; i < 2; i++) {
        files = i == 0 ? all - 1 : all / 2; /* within the second process, or before it */
        assert_non_null(strstr(tcp_bytes_read(processes, getpid(), &files, &bytes), "too many"));
        assert_int_equal(files, 0);
        assert_true(bytes.partial);
        assert_int_equal(bytes.data, 0);
    }
    descendants_table_destroy(processes);
    kill(below, SIGKILL);
    waitpid(below, NULL, 0);
    close(ends[0]);
    close(ends[1]);
}

/* A network that has failed carries nothing, and goes on later. */
static void test_data_on_the_way(void **state)
{
    (void)state;
    struct descendants_table *processes = descendants_table_read(1000);
    char *bytes = mem_alloc((size_t)1 << 20);
    int ends[2];
    need_pidfd_getfd();
    memset(bytes, 1, (size_t)1 << 20);
    for (int way = 0; way < 2; way++) { /* the other end does not read: of that one, and of this */
        struct tcp_bytes some;
        size_t files = 1000;
        connect_ends(ends);
        while (send(ends[0], bytes, way == 0 ? 1 : (size_t)1 << 20, MSG_DONTWAIT) > 0 && way > 0)
            continue;
        pid_t child = fork(); /* `processes` lacks it */
        if (child == 0)
            pause();
        close(ends[way]);
        assert_string_equal(tcp_bytes_read(processes, getpid(), &files, &some),
                            "its connections hold data that has not been read or has not arrived");
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, NULL, 0), child);
        close(ends[1 - way]);
        assert_null(tcp_bytes_read(processes, getpid(), &files, &some));
        assert_string_equal(tcp_bytes_read(processes, child, &files, &some), /* it is gone */
                            "its connections cannot be seen");
    }
    free(bytes);
    descendants_table_destroy(processes);
}

static void on_signal(int number)
{
    (void)number;
}

/* A child that does so may go on by itself. It has a child that has ended. */
static const char *doubt_of_child(int way)
{
    struct activity now = {.doubt = NULL};
    int ends[2];
    char byte;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        struct itimerspec spec = {.it_value.tv_sec = 1000};
        timer_t timer;
        if (fork() == 0)
            _exit(0);
        if (way == 1)
            signal(SIGALRM, on_signal);
        else if (way == 2 && timer_create(CLOCK_MONOTONIC, NULL, &timer) == 0)
            timer_settime(timer, 0, &spec, NULL);
        if (write(ends[1], "x", 1) == 1)
            pause();
        _exit(1);
    }
    assert_int_equal(read(ends[0], &byte, 1), 1);
    assert_true(read_of(child, &now));
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    close(ends[0]);
    close(ends[1]);
    return now.doubt;
}

static void test_doubts(void **state)
{
    (void)state;
    assert_null(doubt_of_child(0));
    assert_non_null(strstr(doubt_of_child(1), "SIGALRM"));
    const char *timer = doubt_of_child(2);
    if (access("/proc/self/timers", R_OK) == 0)
        assert_string_equal(timer, "it has a timer of its own");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_use),
        cmocka_unit_test(test_new_memory),
        cmocka_unit_test(test_a_debugger),
        cmocka_unit_test(test_data),
        cmocka_unit_test(test_no_data),
        cmocka_unit_test(test_bytes_of_tcp),
        cmocka_unit_test(test_heartbeats_are_no_data),
        cmocka_unit_test(test_data_that_is_not_seen_whole),
        cmocka_unit_test(test_data_on_the_way),
        cmocka_unit_test(test_doubts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
