/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include <cmocka.h>

#include "driver/job/part.h"
#include "driver/job_fixture.h"
#include "driver/reach/call_progress.h"

/* The fixture's job with a terminal as its standard error. */
struct start {
    struct fixture *f;
    struct loop_fd *watch;
    int terminal, side;
    char seen[10000]; /* what has come out of the terminal */
    const char *wanted;
};

static void terminal_has(void *context, int what)
{
    struct start *start = context;
    size_t used = strlen(start->seen);
    (void)what;
    ssize_t length = read(start->terminal, start->seen + used, sizeof(start->seen) - 1 - used);
    start->seen[used + (size_t)(length > 0 ? length : 0)] = '\0';
    if (strstr(start->seen, start->wanted) != NULL)
        loop_stop(start->f->job.loop);
}

static int open_start(void **state)
{
    static const struct output_ops ops = {consumed, failed};
    static struct start start;
    if (setup(state) < 0)
        return -1;
    start = (struct start){.f = *state, .terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)};
    struct job *job = &start.f->job;
    if (start.terminal < 0 || grantpt(start.terminal) != 0 || unlockpt(start.terminal) != 0)
        return -1;
    start.side = open(ptsname(start.terminal), O_RDWR | O_NOCTTY | O_CLOEXEC);
    setenv("TERM", "xterm", 1);
    struct output_config config = {
        .ranks = 3, .raw_seat = -1, .out_fd = start.f->sink, .err_fd = start.side};
    output_destroy(job->output, 10000);
    job->output = output_create(job->loop, &config, &ops, NULL, NULL);
    part_open(job, PART_call_progress, &call_progress_part, NULL);
    start.watch = loop_fd_create(job->loop, start.terminal, terminal_has, &start);
    loop_fd_watch(start.watch, LOOP_READ);
    *state = &start;
    return start.side < 0 || start.watch == NULL ? -1 : 0;
}

static int close_start(void **state)
{
    struct start *start = *state;
    void *fixture = start->f;
    part_close(&start->f->job, PART_call_progress, &call_progress_part);
    loop_fd_destroy(start->watch);
    close(start->terminal);
    close(start->side);
    return teardown(&fixture);
}

/* Waits until the terminal shows it. */
static void expect_shown(struct start *start, const char *wanted)
{
    start->wanted = wanted;
    start->seen[0] = '\0';
    run_loop(start->f->job.loop);
}

/* The line changes with the job, and goes when the job has started. */
static void test_line(void **state)
{
    struct start *start = *state;
    struct job *job = &start->f->job;
    job->nodes[0]->stage = STAGE_WAITING;
    job->nodes[1]->stage = STAGE_AUTH;
    call_progress_begin(job);
    expect_shown(start, "connecting 0/2 hosts, slowest: b (auth)");
    job->nodes[0]->state = NODE_STARTING; /* it is not waiting for its turn */
    job->nodes[1]->state = NODE_UP;
    job->nodes_up = 1;
    expect_shown(start, "connecting 1/2 hosts, slowest: a (waiting)");
    job->state = JOB_PREPARING;
    job->nodes[0]->state = NODE_READY;
    job->nodes_ready = 1;
    expect_shown(start, "preparing 1/2 hosts, slowest: b (preparing)");
    job->nodes[1]->state = NODE_READY;
    job->nodes_ready = 2;
    expect_shown(start, "preparing 2/2 hosts");
    assert_null(strstr(start->seen, "slowest"));
    call_progress_end(job);
    for (int i = 0; i < 3; i++) { /* what is still there is written again below each message */
        output_message(job->output, LOG_NOTICE, "all is well");
        expect_shown(start, "all is well");
    }
    assert_null(strstr(start->seen, "2/2"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_start, close_start)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
