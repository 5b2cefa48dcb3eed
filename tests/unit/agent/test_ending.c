/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/ending.h"
#include "agent/room_test.h"
#include "base/mem.h"
#include "loop_fixture.h"
#include "node/descendants.h"

#define LONG_MS 1000000 /* no test lasts as long */
#define SHORT_MS 200

/* Ends of all that runs below the agent, and of one worker. The child of a test is a stray or a
 * worker in a group of its own; it can ignore TERM. */
struct fixture {
    struct loop *loop;
    struct loop_timer *reap, *wait;
    struct ending *ending;
    struct helpers *helpers;
    pid_t child;
    int status;        /* of the child, once it has been waited for */
    bool often;        /* the agent reaps other children all the time */
    int live;          /* workers */
    pid_t group;       /* of a worker */
    char signals[200]; /* to the groups of workers: their numbers */
    int gone;
    bool all;
};

static void signal_workers(void *context, int signal)
{
    struct fixture *f = context;
    size_t used = strlen(f->signals);
    if (used < sizeof(f->signals) - 8)
        snprintf(f->signals + used, sizeof(f->signals) - used, "%d ", signal);
}

static bool is_worker_group(void *context, pid_t group)
{
    const struct fixture *f = context;
    return group == f->group;
}

static int live(void *context)
{
    const struct fixture *f = context;
    return f->live;
}

static void collect(void *context)
{
    (void)context;
}

static void gone(void *context, const char *held)
{
    struct fixture *f = context;
    f->gone++;
    f->all = held == NULL;
    loop_stop(f->loop);
}

static void reap(void *context)
{
    struct fixture *f = context;
    bool reaped = f->child > 0 && waitpid(f->child, &f->status, WNOHANG) == f->child;
    if (reaped)
        f->child = 0;
    if (reaped || f->often)
        ending_check(f->ending);
    loop_timer_set(f->reap, 10);
}

static void wait_over(void *context)
{
    loop_stop(context);
}

static int setup(void **state)
{
    static const struct ending_ops ops = {signal_workers, is_worker_group, live, collect, gone};
    static struct fixture f;
    f = (struct fixture){.loop = loop_create(NULL)};
    f.reap = loop_timer_create(f.loop, reap, &f);
    f.wait = loop_timer_create(f.loop, wait_over, f.loop);
    f.helpers = helpers_create();
    f.ending = ending_create(f.loop, f.helpers, &ops, &f);
    loop_timer_set(f.reap, 0);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    if (f->child > 0) {
        kill(f->child, SIGKILL);
        waitpid(f->child, NULL, 0);
    }
    ending_destroy(f->ending);
    ending_destroy(NULL);
    helpers_destroy(f->helpers);
    loop_timer_destroy(f->reap);
    loop_timer_destroy(f->wait);
    loop_destroy(f->loop);
    return 0;
}

/* A child in a group of its own. It is there when this returns. */
static void start_child(struct fixture *f, bool obeys)
{
    int ends[2];
    char ready;
    assert_int_equal(pipe(ends), 0);
    f->child = fork();
    if (f->child == 0) {
        signal(SIGTERM, obeys ? SIG_DFL : SIG_IGN);
        setpgid(0, 0);
        (void)!write(ends[1], "", 1);
        for (;;)
            pause();
    }
    assert_true(f->child > 0);
    assert_int_equal(read(ends[0], &ready, 1), 1);
    close(ends[0]);
    close(ends[1]);
}

static void wait_ms(struct fixture *f, int64_t ms)
{
    loop_timer_set(f->wait, ms);
    loop_run(f->loop);
    loop_timer_clear(f->wait);
}

static void expect_gone(struct fixture *f, int signal)
{
    if (f->gone == 0)
        run_loop(f->loop);
    assert_int_equal(f->gone, 1);
    assert_true(f->all);
    assert_int_equal(f->child, 0);
    assert_true(WIFSIGNALED(f->status));
    assert_int_equal(WTERMSIG(f->status), signal);
}

static void test_nothing_runs(void **state)
{
    struct fixture *f = *state;
    assert_true(ending_is_idle(f->ending));
    ending_check(f->ending);
    ending_begin(f->ending, SIGTERM, LONG_MS);
    assert_int_equal(f->gone, 1);
    assert_true(f->all);
    assert_string_equal(f->signals, "");
    ending_begin(f->ending, SIGTERM, LONG_MS);
    assert_int_equal(f->gone, 1);
    assert_false(ending_is_idle(f->ending));
    ending_reset(f->ending);
    assert_true(ending_is_idle(f->ending));
}

/* A stray gets the signal itself. Nothing happens after the end. */
static void test_a_stray_obeys(void **state)
{
    struct fixture *f = *state;
    start_child(f, true);
    ending_begin(f->ending, SIGTERM, SHORT_MS);
    expect_gone(f, SIGTERM);
    wait_ms(f, 2 * SHORT_MS);
    assert_int_equal(f->gone, 1);
    assert_string_equal(f->signals, "15 18 ");
}

/* If only strays are left, the grace is cut. */
static void test_a_stray_does_not_obey(void **state)
{
    struct fixture *f = *state;
    start_child(f, false);
    ending_begin(f->ending, SIGTERM, LONG_MS);
    expect_gone(f, SIGKILL);
}

/* But it begins once, however many children are reaped. */
static void test_many_strays(void **state)
{
    struct fixture *f = *state;
    f->often = true;
    start_child(f, false);
    ending_begin(f->ending, SIGTERM, SHORT_MS);
    expect_gone(f, SIGKILL);
}

/* Nobody waits for a helper program of the agent, or ends it: the kernel may hold it. */
static void test_a_helper(void **state)
{
    struct fixture *f = *state;
    start_child(f, true);
    helpers_adopt(f->helpers, f->child);
    ending_begin(f->ending, SIGKILL, 0);
    assert_int_equal(f->gone, 1);
    assert_true(f->all);
    wait_ms(f, SHORT_MS);
    assert_true(f->child > 0);
}

/* A worker has its whole grace, and gets the signal with its group. */
static void test_a_worker_has_its_grace(void **state)
{
    struct fixture *f = *state;
    f->live = 1;
    start_child(f, true);
    f->group = f->child;
    ending_begin(f->ending, SIGTERM, LONG_MS);
    wait_ms(f, SHORT_MS);
    assert_int_equal(f->gone, 0);
    assert_string_equal(f->signals, "15 18 ");
    ending_begin(f->ending, SIGKILL, LONG_MS);
    expect_gone(f, SIGKILL);
    assert_true(strncmp(f->signals, "15 18 9 ", 8) == 0);
}

static void test_no_grace(void **state)
{
    struct fixture *f = *state;
    f->live = 1;
    start_child(f, true);
    f->group = f->child;
    ending_begin(f->ending, SIGTERM, 0);
    assert_string_equal(f->signals, "9 ");
    expect_gone(f, SIGKILL);
}

/* Time in which the job is suspended does not count. */
static void test_suspended(void **state)
{
    struct fixture *f = *state;
    f->live = 1;
    start_child(f, false);
    f->group = f->child;
    ending_begin(f->ending, SIGTERM, SHORT_MS);
    ending_pause(f->ending, true);
    ending_pause(f->ending, true);
    wait_ms(f, 2 * SHORT_MS);
    assert_string_equal(f->signals, "15 18 ");
    ending_pause(f->ending, false);
    expect_gone(f, SIGKILL);
}

/* What is stopped is not continued, and has its grace when it goes on. */
static void test_suspended_before(void **state)
{
    struct fixture *f = *state;
    f->live = 1;
    start_child(f, false);
    f->group = f->child;
    ending_pause(f->ending, true);
    ending_begin(f->ending, SIGTERM, LONG_MS);
    assert_string_equal(f->signals, "15 ");
    ending_pause(f->ending, false);
    wait_ms(f, SHORT_MS);
    assert_string_equal(f->signals, "15 ");
}

/* A parent that called vfork() waits in the kernel (D), and its child does not. */
static pid_t start_held(int ready)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    if (vfork() == 0) {
        (void)!write(ready, "", 1);
        for (;;)
            pause();
    }
    _exit(0);
}

static void end_held(pid_t pid)
{
    pid_t *below AUTO_FREE = NULL;
    size_t count = descendants_list(pid, &below);
    for (size_t i = 0; i < count; i++)
        kill(below[i], SIGKILL);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void test_what_the_kernel_holds(void **state)
{
    struct fixture *f = *state;
    struct buf held AUTO_BUF = BUF_INIT(1000);
    siginfo_t info;
    int ends[2];
    char byte, pid[32];
    start_child(f, true);
    ending_describe_held(f->ending, &held); /* it only has not got the signal yet */
    assert_string_equal(buf_text(&held), "");
    kill(f->child, SIGKILL);
    assert_int_equal(waitid(P_PID, (id_t)f->child, &info, WEXITED | WNOWAIT), 0);
    ending_describe_held(f->ending, &held); /* it only has not been waited for yet */
    assert_string_equal(buf_text(&held), "");
    assert_int_equal(pipe(ends), 0);
    pid_t parent = start_held(ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    ending_describe_held(f->ending, &held);
    snprintf(pid, sizeof(pid), "pid %d (", (int)parent);
    end_held(parent);
    close(ends[0]);
    close(ends[1]);
    assert_ptr_equal(strstr(buf_text(&held), pid), buf_text(&held));
    assert_null(strstr(buf_text(&held), "), pid")); /* nothing else */
}

/* A tracer stops it on its way out: it has SIGKILL, does not wait in state D, and does not end. */
static pid_t start_dying(void)
{
    siginfo_t info;
    pid_t pid = fork();
    if (pid == 0) {
        for (;;)
            pause();
    }
    assert_int_equal(ptrace(PTRACE_SEIZE, pid, NULL, PTRACE_O_TRACEEXIT), 0);
    kill(pid, SIGKILL);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOWAIT), 0);
    return pid;
}

static void end_dying(pid_t pid)
{
    ptrace(PTRACE_DETACH, pid, NULL, NULL);
    waitpid(pid, NULL, 0);
}

static void test_a_killed_process_that_does_not_end(void **state)
{
    struct fixture *f = *state;
    struct buf held AUTO_BUF = BUF_INIT(1000);
    char text[32];
    pid_t pid = start_dying();
    usleep(50000); /* the kernel tells the start of a process in hundredths of a second */
    ending_begin(f->ending, SIGKILL, 0);
    ending_describe_held(f->ending, &held);
    end_dying(pid);
    snprintf(text, sizeof(text), "pid %d (", (int)pid);
    assert_ptr_equal(strstr(buf_text(&held), text), buf_text(&held));
    buf_clear(&held);
    pid = start_dying(); /* one that has only just begun */
    ending_describe_held(f->ending, &held);
    end_dying(pid);
    assert_string_equal(buf_text(&held), "");
}

/* One worker alone */

/* Waits until the child has been reaped. */
static void expect_killed(struct fixture *f, int signal)
{
    for (int i = 0; f->child > 0 && i < 2000; i++)
        wait_ms(f, 10);
    assert_int_equal(f->child, 0);
    assert_int_equal(WTERMSIG(f->status), signal);
}

static void test_a_worker_alone(void **state)
{
    struct fixture *f = *state;
    struct worker_end *end = worker_end_create(f->loop, false);
    start_child(f, true);
    worker_end_started(end, f->child);
    worker_end_begin(end, SIGTERM, LONG_MS);
    assert_false(worker_end_is_over(end));
    expect_killed(f, SIGTERM);
    worker_end_exited(end);
    assert_true(worker_end_is_over(end));
    worker_end_destroy(end);
}

static void test_a_worker_without_grace(void **state)
{
    struct fixture *f = *state;
    for (int kill = 0; kill < 2; kill++) {
        struct worker_end *end = worker_end_create(f->loop, false);
        start_child(f, true);
        worker_end_begin(end, kill ? SIGKILL : SIGTERM, kill ? LONG_MS : 0);
        worker_end_started(end, f->child); /* it was asked for before */
        assert_true(worker_end_is_over(end));
        expect_killed(f, SIGKILL);
        worker_end_destroy(end);
    }
}

static void test_a_worker_that_is_suspended(void **state)
{
    struct fixture *f = *state;
    struct worker_end *end = worker_end_create(f->loop, false);
    start_child(f, false);
    worker_end_started(end, f->child);
    worker_end_begin(end, SIGTERM, SHORT_MS);
    worker_end_pause(end, true);
    worker_end_pause(end, true);
    wait_ms(f, 2 * SHORT_MS);
    assert_false(worker_end_is_over(end));
    assert_true(f->child > 0);
    worker_end_pause(end, false);
    expect_killed(f, SIGKILL);
    assert_true(worker_end_is_over(end));
    worker_end_destroy(end);
}

/* Nothing is due for a worker that nobody ends, or that has not started. */
static void test_a_worker_that_goes_on(void **state)
{
    struct fixture *f = *state;
    struct worker_end *end = worker_end_create(f->loop, false), *planned;
    start_child(f, true);
    worker_end_started(end, f->child);
    worker_end_pause(end, true);
    worker_end_pause(end, false);
    planned = worker_end_create(f->loop, true);
    worker_end_begin(planned, SIGTERM, LONG_MS);
    worker_end_pause(planned, false);
    wait_ms(f, SHORT_MS);
    assert_true(f->child > 0);
    assert_false(worker_end_is_over(planned));
    worker_end_failed(planned);
    assert_true(worker_end_is_over(planned));
    worker_end_destroy(end);
    worker_end_destroy(planned);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_nothing_runs),
        TEST(test_a_stray_obeys),
        TEST(test_a_stray_does_not_obey),
        TEST(test_a_helper),
        TEST(test_many_strays),
        TEST(test_a_worker_has_its_grace),
        TEST(test_no_grace),
        TEST(test_suspended),
        TEST(test_suspended_before),
        TEST(test_what_the_kernel_holds),
        TEST(test_a_killed_process_that_does_not_end),
        TEST(test_a_worker_alone),
        TEST(test_a_worker_without_grace),
        TEST(test_a_worker_that_is_suspended),
        TEST(test_a_worker_that_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
