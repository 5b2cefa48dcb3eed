/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "io/reaper.h"
#include "loop_fixture.h"
#include "unit.h"

struct fixture {
    struct loop *loop;
    struct loop_signals *signals;
    struct reaper *reaper;
    struct reaper_exit exits[8];
    int count, wanted;
};

static void on_exit_of(void *context, const struct reaper_exit *exit)
{
    struct fixture *f = context;
    assert_true(f->count < 8);
    f->exits[f->count++] = *exit;
    if (f->count == f->wanted)
        loop_stop(f->loop);
}

static void on_signal(void *context, int signal, int sender_pid)
{
    (void)signal, (void)sender_pid;
    struct fixture *f = context;
    reaper_collect(f->reaper);
}

static int setup(void **state)
{
    static struct fixture f;
    static const int signals[] = {SIGCHLD, 0};
    f = (struct fixture){.loop = loop_create(NULL)};
    f.signals = loop_signals_create(f.loop, signals, on_signal, &f, NULL);
    f.reaper = reaper_create(on_exit_of, &f);
    *state = &f;
    return prctl(PR_SET_CHILD_SUBREAPER, 1);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    reaper_destroy(f->reaper);
    loop_signals_destroy(f->signals);
    loop_destroy(f->loop);
    return 0;
}

static const struct reaper_exit *exit_of(const struct fixture *f, pid_t pid)
{
    const struct reaper_exit *found = NULL;
    for (int i = 0; i < f->count; i++) {
        if (f->exits[i].pid == pid) {
            assert_null(found); /* each once */
            found = &f->exits[i];
        }
    }
    assert_non_null(found);
    return found;
}

static void test_codes_and_signals(void **state)
{
    struct fixture *f = *state;
    unit_clock_stop(77, 0);
    pid_t pids[4];
    assert_false(reaper_has_children());
    for (int i = 0; i < 4; i++) {
        pids[i] = fork();
        if (pids[i] == 0 && i == 3)
            kill(getpid(), SIGKILL);
        if (pids[i] == 0)
            _exit(i);
    }
    assert_true(reaper_has_children());
    f->wanted = 4;
    run_loop(f->loop);
    unit_clock_run();
    for (int i = 0; i < 3; i++) {
        const struct reaper_exit *exit = exit_of(f, pids[i]);
        assert_true(WIFEXITED(exit->wait_status));
        assert_int_equal(WEXITSTATUS(exit->wait_status), i);
        assert_int_equal(exit->when_ns, 77);
        assert_true(exit->usage.ru_maxrss > 0);
    }
    assert_int_equal(exit_of(f, pids[3])->wait_status, SIGKILL);
    assert_false(reaper_has_children());
}

/* Several ends may come with one signal: all of them are collected. */
static void test_one_signal_for_many(void **state)
{
    struct fixture *f = *state;
    pid_t last = 0;
    for (int i = 0; i < 5; i++) {
        pid_t pid = fork();
        if (pid == 0)
            _exit(0);
        siginfo_t info; /* it has ended, and is still to be collected */
        assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
        last = pid;
    }
    assert_true(reaper_has_children()); /* also those that only wait to be collected */
    assert_true(reaper_has(last));
    f->wanted = 5;
    run_loop(f->loop);
    assert_false(reaper_has_children());
    assert_false(reaper_has(last));
    assert_false(reaper_has(getpid()));
    reaper_collect(f->reaper); /* nothing there: nothing happens */
    assert_int_equal(f->count, 5);
}

static void test_a_running_child_is_left_alone(void **state)
{
    struct fixture *f = *state;
    int hold[2];
    char byte;
    assert_int_equal(fd_pipe(hold), 0);
    pid_t pid = fork();
    if (pid == 0) {
        fd_close(&hold[1]);
        _exit(fd_read(hold[0], &byte, 1) == 0 ? 7 : 1);
    }
    fd_close(&hold[0]);
    reaper_collect(f->reaper);
    assert_int_equal(f->count, 0);
    assert_true(reaper_has_children());
    fd_close(&hold[1]);
    f->wanted = 1;
    run_loop(f->loop);
    assert_int_equal(WEXITSTATUS(exit_of(f, pid)->wait_status), 7);
}

/* A grandchild whose parent has ended becomes ours. */
static void test_orphans(void **state)
{
    struct fixture *f = *state;
    int hold[2], tell[2];
    char byte;
    assert_int_equal(fd_pipe(hold), 0);
    assert_int_equal(fd_pipe(tell), 0);
    pid_t child = fork();
    if (child == 0) {
        pid_t grandchild = fork();
        if (grandchild == 0) {
            fd_close(&hold[1]);
            _exit(fd_read(hold[0], &byte, 1) == 0 ? 42 : 1);
        }
        _exit(fd_write_all(tell[1], &grandchild, sizeof(grandchild)) == 0 ? 0 : 1);
    }
    f->wanted = 1;
    run_loop(f->loop);
    assert_int_equal(f->exits[0].pid, child);
    assert_int_equal(f->exits[0].wait_status, 0);
    assert_true(reaper_has_children()); /* the orphan */
    pid_t orphan = 0;
    assert_int_equal(fd_read(tell[0], &orphan, sizeof(orphan)), sizeof(orphan));
    fd_close(&hold[1]);
    f->wanted = 2;
    run_loop(f->loop);
    assert_int_equal(WEXITSTATUS(exit_of(f, orphan)->wait_status), 42);
    assert_false(reaper_has_children());
    fd_close(&hold[0]);
    fd_close(&tell[0]);
    fd_close(&tell[1]);
}

/* What is ignored stays so through exec: whoever started us may have chosen it. */
static void test_children_are_ignored_no_more(void **state)
{
    struct fixture *f = *state;
    signal(SIGCHLD, SIG_IGN);
    reaper_destroy(reaper_create(NULL, NULL));
    pid_t pid = fork();
    if (pid == 0)
        _exit(7);
    f->wanted = 1;
    run_loop(f->loop);
    assert_int_equal(WEXITSTATUS(exit_of(f, pid)->wait_status), 7);
}

/* Another thread of this process may trace a worker: its stops are reported like exits. */
static void test_a_traced_child_is_left_alone(void **state)
{
    struct fixture *f = *state;
    siginfo_t info = {.si_pid = 0};
    pid_t pid = fork();
    if (pid == 0) {
        pause();
        _exit(0);
    }
    if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) < 0) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        skip();
    }
    assert_int_equal(ptrace(PTRACE_INTERRUPT, pid, NULL, NULL), 0);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOWAIT), 0);
    reaper_collect(f->reaper);
    reaper_collect_one(f->reaper, pid);
    assert_int_equal(f->count, 0);
    assert_int_equal(ptrace(PTRACE_DETACH, pid, NULL, NULL), 0);
    kill(pid, SIGKILL);
    f->wanted = 1;
    run_loop(f->loop);
    assert_int_equal(WTERMSIG(exit_of(f, pid)->wait_status), SIGKILL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_codes_and_signals),
        TEST(test_one_signal_for_many),
        TEST(test_a_running_child_is_left_alone),
        TEST(test_orphans),
        TEST(test_children_are_ignored_no_more),
        TEST(test_a_traced_child_is_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
