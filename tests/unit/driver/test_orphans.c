/* SPDX-License-Identifier: Apache-2.0 */
/* Real processes: agents with workers below them, which end with the test at the latest. The driver
 * has lost the link to some of the agents. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/mem.h"
#include "driver/end/end.h"
#include "driver/job/job_nodes.h"
#include "driver/job/part.h"
#include "helpers_fixture.h"
#include "node/proc_state.h"
#include "unit.h"

#define AGENTS 40
#define LOST 30   /* the first ones of them */
#define WORKERS 2 /* of each agent */
#define TURNS 5   /* of the loop: fewer than LOST */

struct fixture {
    struct helper_loop own;
    struct job job;
    int hold[2]; /* a process ends when [0] is at its end */
    int tells[2];
    pid_t agents[AGENTS], workers[AGENTS][WORKERS];
    int far_ends[AGENTS]; /* of the links */
    struct buf said;
};

static void say(void *context, enum log_level level, const char *line)
{
    (void)level;
    buf_printf(context, "%s\n", line);
}

static void stay(const struct fixture *f)
{
    char byte;
    close(f->hold[1]);
    (void)!read(f->hold[0], &byte, 1);
    _exit(0);
}

static void run_agent(const struct fixture *f)
{
    for (int i = 0; i < WORKERS; i++) {
        pid_t pid = fork();
        if (pid == 0)
            stay(f);
        (void)!write(f->tells[1], &pid, sizeof(pid));
    }
    stay(f);
}

static void start_agent(struct fixture *f, int index)
{
    f->agents[index] = fork();
    if (f->agents[index] == 0)
        run_agent(f);
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(read(f->tells[0], &f->workers[index][i], sizeof(pid_t)), sizeof(pid_t));
}

static void on_frame(void *context, struct node_link *node, const struct frame_header *header,
                     const uint8_t *body)
{
    (void)context, (void)node, (void)header, (void)body;
}

static void on_closed(void *context, struct node_link *node, const char *why)
{
    (void)context, (void)node, (void)why;
}

static void on_suspect(void *context, struct node_link *node, bool silent, int64_t silence_ms)
{
    (void)context, (void)node, (void)silent, (void)silence_ms;
}

/* Those that are lost have no link any more, but their processes still run: they may hang. */
static void add_node(struct fixture *f, int index)
{
    static const struct node_link_ops ops = {on_frame, on_closed, on_suspect};
    int ends[2];
    struct node_link *node = job_add_node(&f->job, "a");
    node_link_init(node, f->job.loop, 30000, &f->job.log, &ops, f);
    f->far_ends[index] = -1;
    node->stream.pid = f->agents[index];
    if (index < LOST)
        return;
    assert_int_equal(fd_socketpair(ends), 0);
    f->far_ends[index] = ends[1];
    const struct transport_stream stream = {
        .read_fd = ends[0], .write_fd = ends[0], .pid = f->agents[index], .same_machine = true};
    assert_int_equal(node_link_connect(node, &stream, NULL), 0);
}

static int setup(void **state)
{
    static struct fixture f;
    f = (struct fixture){.said = BUF_INIT(1 << 20)};
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    assert_int_equal(pipe(f.hold), 0);
    assert_int_equal(pipe(f.tells), 0);
    helper_loop_open(&f.own);
    for (int i = 0; i < AGENTS; i++)
        start_agent(&f, i);
    f.job = (struct job){.loop = f.own.loop,
                         .reaper = f.own.reaper,
                         .own[PART_helpers] = f.own.helpers,
                         .log = {LOG_DEBUG, say, &f.said}};
    for (int i = 0; i < AGENTS; i++)
        add_node(&f, i);
    part_open(&f.job, PART_orphans, &orphans_part, NULL);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    part_close(&f->job, PART_orphans, &orphans_part);
    close(f->hold[1]);
    helper_loop_expect_idle(&f->own);
    for (int i = 0; i < AGENTS; i++) {
        node_link_destroy(f->job.nodes[i]);
        fd_close(&f->far_ends[i]);
    }
    free(f->job.nodes);
    run_turns(f->own.loop, 1);
    helper_loop_close(&f->own);
    close(f->hold[0]);
    close(f->tells[0]);
    close(f->tells[1]);
    buf_destroy(&f->said);
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    return 0;
}

static bool runs(pid_t pid)
{
    struct proc_state state;
    bool there = proc_state_read(pid, NULL, &state) == 0;
    bool running = there && strcmp(state.doing, proc_state_word('Z')) != 0;
    proc_state_destroy(&state);
    return running;
}

static int running(const struct fixture *f, int from, int to)
{
    int count = 0;
    for (int i = from; i < to; i++) {
        count += runs(f->agents[i]) ? 1 : 0;
        for (int j = 0; j < WORKERS; j++)
            count += runs(f->workers[i][j]) ? 1 : 0;
    }
    return count;
}

static int sweeps(const struct fixture *f)
{
    int count = 0;
    const char *at = strstr(buf_text(&f->said), "swept");
    for (; at != NULL; at = strstr(at + 1, "swept"))
        count++;
    return count;
}

static void expect_only_live_ones(struct fixture *f)
{
    int64_t limit = unit_limit_ms(RUN_LIMIT_MS);
    while (running(f, 0, LOST) > 0 && !unit_is_over(limit))
        run_turns(f->own.loop, 5);
    assert_int_equal(running(f, 0, LOST), 0);
    assert_int_equal(running(f, LOST, AGENTS), (AGENTS - LOST) * (1 + WORKERS));
}

/* They go on until one finds nothing: those that are killed may have started others meanwhile. */
static void expect_the_last_sweep(struct fixture *f)
{
    int64_t limit = unit_limit_ms(RUN_LIMIT_MS);
    while (strstr(buf_text(&f->said), "killed 0 processes") == NULL && !unit_is_over(limit))
        run_turns(f->own.loop, 5);
    assert_non_null(strstr(buf_text(&f->said), "killed 0 processes"));
    assert_true(sweeps(f) > 1);
}

/* Each lost agent asks for a sweep. There is one for all that are lost in a turn. */
static void test_many_are_lost_at_once(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < LOST; i++)
        orphans_sweep(&f->job);
    assert_int_equal(sweeps(f), 0);
    run_turns(f->own.loop, TURNS);
    assert_in_range(sweeps(f), 1, TURNS + 1);
    expect_only_live_ones(f);
    expect_the_last_sweep(f);
}

/* More are lost while the sweeping goes on: nothing of these remains either. */
static void test_they_are_lost_in_turn(void **state)
{
    struct fixture *f = *state;
    struct link *links[LOST];
    for (int i = 0; i < LOST; i++) { /* until it is their turn, they count as alive */
        links[i] = f->job.nodes[i]->link;
        f->job.nodes[i]->link = f->job.nodes[LOST]->link;
    }
    for (int i = 0; i < LOST; i++) {
        f->job.nodes[i]->link = links[i];
        orphans_sweep(&f->job);
        run_turns(f->own.loop, 1);
    }
    expect_only_live_ones(f);
}

/* A program that keeps the connection to an agent is spared with all below it, unless its agent is
 * lost. */
static void test_helpers(void **state)
{
    struct fixture *f = *state;
    struct node_link *other = f->job.nodes[AGENTS - 1];
    helpers_adopt(f->own.helpers, f->agents[0]);          /* lost */
    helpers_adopt(f->own.helpers, f->agents[AGENTS - 1]); /* no node's process now */
    other->stream.pid = 0;
    orphans_sweep(&f->job);
    expect_only_live_ones(f);
}

/* At the very end, nothing is left below us. */
static void test_the_end(void **state)
{
    struct fixture *f = *state;
    for (int i = LOST; i < AGENTS; i++)
        fd_close(&f->far_ends[i]);
    for (int i = LOST; i < AGENTS; i++) {
        while (node_link_alive(f->job.nodes[i]))
            run_turns(f->own.loop, 1);
    }
    assert_true(orphans_end(&f->job, RUN_LIMIT_MS));
    assert_int_equal(running(f, 0, AGENTS), 0);
    assert_false(reaper_has_children());
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_many_are_lost_at_once),
        TEST(test_they_are_lost_in_turn),
        TEST(test_helpers),
        TEST(test_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
