/* SPDX-License-Identifier: Apache-2.0 */
/* The native frames of processes that run here, and what reading them does to these. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "stacks/native_test.h"
#include "stacks/tasks.h"
#include "unit.h"

#define SECOND ((int64_t)1000000000)
#define INTERRUPTED 9
#define SIGNALS 300
#define DEEP 5000

/* What a child and the test share. */
struct shared {
    atomic_long rounds, signals;
    atomic_int ready;
};

static struct shared *shared;
static pid_t child;
static const struct unwind_module *module;

__attribute__((noinline)) static void waits_here(void)
{
#ifdef __SANITIZE_ADDRESS__ /* with frame pointers: it will be stopped */
    shared->ready = 1;
    pause();
#endif
    struct epoll_event event;
    int fd = epoll_create1(0);
    shared->ready = 1;
    if (epoll_wait(fd, &event, 1, -1) < 0)
        _exit(INTERRUPTED);
}

__attribute__((noinline)) static void spins_here(void)
{
    shared->ready = 1;
    while (shared->ready == 1)
        shared->rounds++;
}

__attribute__((noinline)) static int recurses_here(int depth)
{
    volatile int here = depth;
    if (depth > 0)
        here += recurses_here(depth - 1);
    else
        spins_here();
    return here;
}

static void recurses(void)
{
    recurses_here(DEEP);
}

static void *spins_in_thread(void *context)
{
    (void)context;
    spins_here();
    return NULL;
}

static void runs_threads(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, spins_in_thread, NULL);
    waits_here();
}

static void count_signal(int number)
{
    (void)number;
    shared->signals++;
}

static void counts_signals(void)
{
    signal(SIGRTMIN, count_signal);
    spins_here();
}

/* Code that no file has, as a compiler at run time makes it: it jumps to itself. */
static void runs_code_without_a_file(void)
{
    static const unsigned char code[] = {0xeb, 0xfe};
    void *page =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    union {
        void *object;
        void (*function)(void);
    } entry = {.object = page};
    if (page == MAP_FAILED)
        _exit(1);
    memcpy(page, code, sizeof(code));
    shared->ready = 1;
    entry.function();
}

static void start(void (*run)(void))
{
    memset(shared, 0, sizeof(*shared));
    child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        run();
        _exit(0);
    }
    for (int i = 0; i < 3000 && shared->ready == 0; i++)
        usleep(10000);
    assert_int_equal(shared->ready, 1);
}

static int setup(void **state)
{
    (void)state;
    child = 0;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    if (child > 0) {
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    return 0;
}

static bool goes_on(void)
{
    long before = shared->rounds;
    for (int i = 0; i < 3000 && shared->rounds == before; i++)
        usleep(10000);
    return shared->rounds != before;
}

static void read_now(struct native_stacks *out)
{
    native_read(module, &rights_own, child, unit_limit_ns(30 * SECOND), out);
}

/* The frame of a thread with this function; -1: none. */
static int frame_of(const struct native_thread *thread, const char *function)
{
    for (size_t i = 0; i < thread->count; i++) {
        if (strcmp(thread->frames[i].function, function) == 0)
            return (int)i;
    }
    return -1;
}

static bool is_readable(const struct native_stacks *stacks)
{
    return stacks->trouble == NULL || strstr(stacks->trouble, "Operation not permitted") == NULL;
}

static void test_a_thread_that_waits_is_not_interrupted(void **state)
{
    (void)state;
    struct native_stacks stacks;
    start(waits_here);
    for (int i = 0; i < 20; i++) {
        struct task task;
        for (int j = 0; j < 3000 && task_read(child, child, &task) == 0 && task.runs; j++)
            usleep(10000);
        read_now(&stacks);
        assert_null(stacks.trouble);
        assert_int_equal(stacks.count, 1);
        assert_int_equal(stacks.threads[0].tid, child);
        assert_true(frame_of(&stacks.threads[0], "waits_here") > 0);
        assert_true(frame_of(&stacks.threads[0], "_cmocka_run_group_tests") > 0);
        native_stacks_destroy(&stacks);
    }
    int status = 0;
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    child = 0;
    assert_true(WIFSIGNALED(status)); /* and not INTERRUPTED */
}

static void test_a_thread_that_runs(void **state)
{
    (void)state;
    struct native_stacks stacks;
    start(spins_here);
    read_now(&stacks);
    if (!is_readable(&stacks)) {
        native_stacks_destroy(&stacks);
        skip();
    }
    assert_null(stacks.trouble);
    assert_int_equal(stacks.count, 1);
    const struct native_thread *thread = &stacks.threads[0];
    assert_true(thread->whole);
    assert_int_equal(frame_of(thread, "spins_here"), 0);
    assert_true(frame_of(thread, "_cmocka_run_group_tests") > 0);
    assert_true(thread->frames[0].file[0] != '\0');
    assert_true(thread->frames[0].native);
    native_stacks_destroy(&stacks);
    assert_true(goes_on());
}

static void test_all_threads(void **state)
{
    (void)state;
    struct native_stacks stacks;
    start(runs_threads);
    assert_true(goes_on());
    read_now(&stacks);
    if (!is_readable(&stacks)) {
        native_stacks_destroy(&stacks);
        skip();
    }
    assert_int_equal(stacks.count, 2);
    int main_one = stacks.threads[0].tid == child ? 0 : 1;
    assert_int_equal(stacks.threads[main_one].tid, child);
    assert_true(frame_of(&stacks.threads[1 - main_one], "spins_in_thread") > 0 ||
                frame_of(&stacks.threads[1 - main_one], "spins_here") == 0);
    native_stacks_destroy(&stacks);
    assert_true(goes_on());
}

static void test_a_stopped_process_stays_stopped(void **state)
{
    (void)state;
    struct native_stacks stacks;
    int status = 0;
    start(spins_here);
    kill(child, SIGSTOP);
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    read_now(&stacks);
    assert_int_equal(stacks.count, 1);
    assert_int_equal(frame_of(&stacks.threads[0], "spins_here"), 0);
    native_stacks_destroy(&stacks);
    long before = shared->rounds;
    usleep(50000);
    assert_int_equal(shared->rounds, before);
    kill(child, SIGCONT);
    assert_true(goes_on());
}

/* A signal that comes while a thread is stopped reaches it all the same. */
static void test_no_signal_is_lost(void **state)
{
    (void)state;
    start(counts_signals);
    pid_t sender = fork();
    if (sender == 0) {
        for (int i = 0; i < SIGNALS; i++) {
            while (sigqueue(child, SIGRTMIN, (union sigval){.sival_int = i}) < 0 && errno == EAGAIN)
                unit_pause();
            usleep(100);
        }
        _exit(0);
    }
    int status = 0;
    do {
        struct native_stacks stacks;
        read_now(&stacks);
        native_stacks_destroy(&stacks);
    } while (waitpid(sender, &status, WNOHANG) == 0);
    for (int i = 0; i < 3000 && shared->signals < SIGNALS; i++)
        usleep(10000);
    assert_int_equal(shared->signals, SIGNALS);
}

/* Whoever reads may be killed at any time: the process goes on. */
static void test_a_reader_that_dies(void **state)
{
    (void)state;
    start(spins_here);
    for (int i = 0; i < 30; i++) {
        pid_t reader = fork();
        if (reader == 0) {
            for (;;) {
                struct native_stacks stacks;
                read_now(&stacks);
                native_stacks_destroy(&stacks);
            }
        }
        usleep((useconds_t)(1000 + 997 * i));
        kill(reader, SIGKILL);
        waitpid(reader, NULL, 0);
        assert_true(goes_on());
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, WNOHANG), 0);
}

static void test_a_deep_stack(void **state)
{
    (void)state;
    struct native_stacks stacks;
    start(recurses);
    read_now(&stacks);
    if (!is_readable(&stacks)) {
        native_stacks_destroy(&stacks);
        skip();
    }
    assert_int_equal(stacks.count, 1);
    assert_int_equal(stacks.threads[0].count, NATIVE_FRAMES_MAX);
    assert_int_equal(frame_of(&stacks.threads[0], "recurses_here"), 1);
    assert_true(stacks.threads[0].whole);
    native_stacks_destroy(&stacks);
    assert_true(goes_on());
}

static void test_code_without_a_file(void **state)
{
    (void)state;
    struct native_stacks stacks;
#ifndef __x86_64__
    skip();
#endif
    start(runs_code_without_a_file);
    for (int i = 0; i < 3000; i++) {
        read_now(&stacks);
        bool there = stacks.count == 1 && stacks.threads[0].count > 0 &&
                     strcmp(stacks.threads[0].frames[0].function, "(code without a file)") == 0;
        bool readable = is_readable(&stacks);
        native_stacks_destroy(&stacks);
        if (there)
            return;
        if (!readable)
            skip();
        usleep(10000);
    }
    fail();
}

static void test_too_late_and_gone(void **state)
{
    (void)state;
    struct native_stacks stacks;
    start(spins_here);
    native_read(module, &rights_own, child, unit_limit_ns(-SECOND), &stacks);
    for (size_t i = 0; i < stacks.count; i++)
        assert_int_equal(stacks.threads[i].count, 0);
    assert_non_null(strstr(stacks.trouble, "in time"));
    native_stacks_destroy(&stacks);
    assert_true(goes_on());
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    read_now(&stacks);
    assert_int_equal(stacks.count, 0);
    native_stacks_destroy(&stacks);
    child = 0;
}

/* A debugger has it: the kernel allows one tracer at a time. */
static void test_a_thread_that_is_traced(void **state)
{
    (void)state;
    struct native_stacks stacks;
    int ready[2], answer = 0;
    assert_int_equal(pipe(ready), 0);
    start(spins_here);
    pid_t tracer = fork();
    if (tracer == 0) {
        char byte = ptrace(PTRACE_SEIZE, child, NULL, NULL) == 0 ? 'y' : 'n';
        if (write(ready[1], &byte, 1) == 1)
            pause();
        _exit(0);
    }
    assert_int_equal(read(ready[0], &answer, 1), 1);
    if (answer == 'y')
        read_now(&stacks);
    kill(tracer, SIGKILL);
    waitpid(tracer, NULL, 0);
    close(ready[0]);
    close(ready[1]);
    if (answer != 'y')
        skip();
    assert_int_equal(stacks.threads[0].count, 0);
    assert_non_null(strstr(stacks.trouble, "cannot be stopped: Operation not permitted"));
    native_stacks_destroy(&stacks);
    assert_true(goes_on());
}

static void test_the_processes_of_others(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    start(spins_here);
    pid_t reader = fork();
    if (reader == 0) {
        struct native_stacks stacks;
        if (setgid(65534) < 0 || setuid(65534) < 0)
            _exit(1);
        read_now(&stacks);
        bool refused = stacks.count == 0 && stacks.trouble != NULL &&
                       strstr(stacks.trouble, "its memory cannot be read: ") != NULL;
        _exit(refused ? 0 : 2);
    }
    int status = 0;
    waitpid(reader, &status, 0);
    assert_int_equal(status, 0);
    assert_true(goes_on());
}

static void test_no_module(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    assert_null(native_load("/nowhere/hvdrun-unwind.so", &err));
    assert_non_null(strstr(err.text, "/nowhere/hvdrun-unwind.so"));
    assert_null(native_load("/dev/null", &err));
    assert_non_null(strstr(err.text, "libdw1"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_thread_that_waits_is_not_interrupted),
        TEST(test_a_thread_that_runs),
        TEST(test_all_threads),
        TEST(test_a_stopped_process_stays_stopped),
        TEST(test_no_signal_is_lost),
        TEST(test_a_reader_that_dies),
        TEST(test_a_deep_stack),
        TEST(test_code_without_a_file),
        TEST(test_too_late_and_gone),
        TEST(test_a_thread_that_is_traced),
        TEST(test_the_processes_of_others),
        TEST(test_no_module),
    };
    module = native_load(HVDRUN_UNWIND_MODULE, NULL);
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_non_null(module);
    assert_true(shared != MAP_FAILED);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
