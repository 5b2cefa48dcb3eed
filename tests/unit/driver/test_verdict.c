/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/status.h"
#include "driver/elastic/parts.h"
#include "driver/end/end.h"
#include "driver/end/teardown.h"
#include "driver/end/warning.h"
#include "driver/job/part.h"
#include "driver/job_fixture.h"
#include "model/elastic/job.h"

/* The verdict on a job: that of its kind, and what is stronger. */

static void of_the_kind(const struct job *job, struct verdict *out)
{
    exit_policy_verdict(job->kind_data, out);
}

static int open_end(void **state)
{
    static struct job_kind kind;
    if (setup(state) < 0)
        return -1;
    struct fixture *f = *state;
    kind = (struct job_kind){.has_workers = true, .verdict = of_the_kind, .role = role};
    f->job.kind = &kind;
    return part_open(&f->job, PART_warning, &warning_part, NULL);
}

static int close_end(void **state)
{
    struct fixture *f = *state;
    part_close(&f->job, PART_warning, &warning_part);
    exit_outside_clear(&f->job.outside);
    return teardown(state);
}

static void all_succeed(struct fixture *f)
{
    for (int rank = 0; rank < 3; rank++)
        exits(f, rank, false, 0, 7 * SECOND);
}

static void expect(const struct verdict *verdict, int status, enum exit_cause cause,
                   const char *explanation)
{
    assert_int_equal(verdict->status, status);
    assert_string_equal(exit_cause_name(verdict->cause), exit_cause_name(cause));
    assert_string_equal(verdict->explanation, explanation);
}

/* What an agent says comes before the end of its connection. */
static void test_an_agent_says_why_and_ends(void **state)
{
    struct fixture *f = *state;
    struct node_link *node = f->job.nodes[1];
    f->job.state = JOB_CLOSING; /* nothing is to be ended here */
    node->liveness.heard_ms = 6000;
    teardown_told(&f->job, node, STATUS_LAUNCHER, "b runs another version");
    const struct exit_loss loss = {.alive_ns = 5 * SECOND, .by_ns = 6 * SECOND + 1};
    exit_policy_node_lost(f->policy, 1, &loss, "its agent ended");
    verdict_make(&f->job);
    expect(&f->job.verdict, STATUS_LAUNCHER, CAUSE_LAUNCHER, "b runs another version");
}

static void test_success(void **state)
{
    struct fixture *f = *state;
    all_succeed(f);
    verdict_make(&f->job);
    expect(&f->job.verdict, 0, CAUSE_NONE, "3 ranks succeeded");
    assert_int_equal(f->job.verdict.seat, -1);
}

/* blame.h refines it. */
static void test_a_likely_cause(void **state)
{
    static const char broken[] = "Fatal Python error: row \033[7m is broken\n";
    static const char closed[] = "RuntimeError: Connection closed by peer\n";
    struct fixture *f = *state;
    f->job.nodes[0]->same_clock = f->job.nodes[1]->same_clock = true;
    tail_add(&f->job.ranks.records[2].tail, broken, strlen(broken), 5 * SECOND);
    tail_add(&f->job.ranks.records[0].tail, closed, strlen(closed), 6 * SECOND);
    exits(f, 0, false, 1, 7 * SECOND);
    exit_policy_killed(f->policy, 0, 8 * SECOND);
    exit_policy_killed(f->policy, 1, 8 * SECOND);
    exits(f, 1, true, SIGTERM, 9 * SECOND);
    exits(f, 2, true, SIGTERM, 9 * SECOND);
    verdict_make(&f->job);
    expect(&f->job.verdict, 1, CAUSE_EXIT,
           "rank 2 is most likely the cause: Fatal Python error: row  [7m is broken; "
           "rank 0 exited with code 1");
    assert_int_equal(f->job.verdict.seat, 2);
}

/* What another program says does not control the terminal. */
static void test_the_queue_refuses(void **state)
{
    struct fixture *f = *state;
    const struct allocation allocation = {.kind = ALLOCATION_SLURM, .job_id = (char *)"814"};
    f->request.allocation = &allocation;
    struct requeue requeue = {.refused = (char *)"not\007allowed"};
    f->job.own[PART_requeue] = &requeue;
    all_succeed(f);
    verdict_make(&f->job);
    expect(&f->job.verdict, 125, CAUSE_LAUNCHER,
           "cannot requeue the Slurm job 814: not?allowed; submit it with sbatch --requeue");
}

/* Nobody has read the output: that is a failure of a job that has succeeded. */
static void test_output_is_lost(void **state)
{
    struct fixture *f = *state;
    all_succeed(f);
    f->job.output_failed = true;
    verdict_make(&f->job);
    assert_int_equal(f->job.verdict.status, 0); /* its workers did what they should */
    f->job.gone = true;
    verdict_make(&f->job);
    assert_int_equal(f->job.verdict.status, 128 + SIGPIPE);
    f->job.verdict.status = 3;
    verdict_note_output(&f->job);
    assert_int_equal(f->job.verdict.status, 3); /* the first failure counts */
    f->job.verdict.status = 0;
    verdict_note_output(&f->job);
    assert_int_equal(f->job.verdict.status, 128 + SIGPIPE);
}

static void test_output_of_a_check(void **state)
{
    struct fixture *f = *state;
    struct job_kind kind = {.verdict = of_the_kind, .role = role};
    f->job.kind = &kind;
    all_succeed(f);
    verdict_make(&f->job);
    assert_int_equal(f->job.verdict.status, 0);
    f->job.output_failed = true;
    verdict_note_output(&f->job);
    assert_int_equal(f->job.verdict.status, 125);
}

/* An elastic job */

static void expect_elastic(struct fixture *f, struct elastic_verdict verdict, int status,
                           enum exit_cause cause, const char *explanation)
{
    struct elastic core = {.verdict = verdict};
    memset(&f->job.verdict, 0, sizeof(f->job.verdict));
    elastic_verdict_of(&f->job, &core, &f->job.verdict);
    expect(&f->job.verdict, status, cause, explanation);
}

static void test_ends_of_an_elastic_job(void **state)
{
    struct fixture *f = *state;
    struct elastic_verdict end = {.end = ELASTIC_END_SUCCESS, .seat = -1, .host = -1};
    expect_elastic(f, end, 0, CAUSE_NONE, "");
    end = (struct elastic_verdict){
        .end = ELASTIC_END_CRASH, .code = 3, .seat = 2, .rank = 2, .host = 1, .text = "crashed"};
    expect_elastic(f, end, 3, CAUSE_EXIT, "crashed");
    assert_int_equal(f->job.verdict.seat, 2);
    assert_int_equal(f->job.verdict.node, 1);
    end.code = 0x103;
    expect_elastic(f, end, 3, CAUSE_EXIT, "crashed");
    end.code = SIGKILL;
    end.signaled = true;
    expect_elastic(f, end, 128 + SIGKILL, CAUSE_SIGNAL, "crashed");
    end.end = ELASTIC_END_FAULT;
    expect_elastic(f, end, 128 + SIGKILL, CAUSE_SIGNAL, "crashed");
    end = (struct elastic_verdict){.end = ELASTIC_END_HOST_LOST, .seat = -1, .host = 1};
    expect_elastic(f, end, 121, CAUSE_NODE_LOST, "");
    end.end = ELASTIC_END_NO_HOSTS;
    expect_elastic(f, end, 123, CAUSE_LAUNCHER, "");
    end.end = ELASTIC_END_RESET_LIMIT;
    expect_elastic(f, end, 121, CAUSE_LAUNCHER, "");
    end.host = 0;
    expect_elastic(f, end, 121, CAUSE_LAUNCHER, "");
    end.host = -1;
    expect_elastic(f, end, 125, CAUSE_LAUNCHER, "");
}

static void test_an_elastic_job_ended_from_outside(void **state)
{
    struct fixture *f = *state;
    const struct elastic_verdict none = {.end = ELASTIC_END_NONE},
                                 driver = {.end = ELASTIC_END_DRIVER};
    expect_elastic(f, none, 125, CAUSE_LAUNCHER,
                   "the launcher ended the job without a recorded reason");
    exit_outside_interrupted(&f->job.outside, SIGINT, 6 * SECOND);
    expect_elastic(f, none, 128 + SIGINT, CAUSE_INTERRUPTED, "interrupted (SIGINT)");
    f->job.gone = true;
    expect_elastic(f, driver, 128 + SIGPIPE, CAUSE_INTERRUPTED,
                   "the reader of the output is gone (SIGPIPE)");
    exit_outside_failed(&f->job.outside, 124, 7 * SECOND, "too late");
    expect_elastic(f, driver, 124, CAUSE_TIMEOUT, "too late");
}

static void expect_role(struct fixture *f, const char *wanted)
{
    assert_string_equal(exit_role_name(elastic_role_of(&f->job, 1)), wanted);
}

static void test_roles(void **state)
{
    struct fixture *f = *state;
    struct rank_record *record = &f->job.ranks.records[1];
    f->job.verdict.seat = 1;
    expect_role(f, "none");
    exits(f, 1, false, 0, 7 * SECOND);
    expect_role(f, "ok");
    record->code = 3;
    expect_role(f, "cause");
    f->job.verdict.seat = 0;
    expect_role(f, "failed");
    record->ended_by_us = true;
    expect_role(f, "consequence");
    record->aborted = true;
    expect_role(f, "failed");
    record->ended_by_us = record->aborted = false;
    record->signaled = true; /* signal 0 does not come; the code is that of the signal */
    exit_outside_interrupted(&f->job.outside, SIGINT, 7 * SECOND);
    expect_role(f, "failed"); /* not after it */
    f->job.outside.interrupted.round_ns = SECOND;
    expect_role(f, "consequence");
    f->job.outside.interrupted.signal = 0;
    expect_role(f, "failed");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_end, close_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_an_agent_says_why_and_ends),
        TEST(test_success),
        TEST(test_a_likely_cause),
        TEST(test_the_queue_refuses),
        TEST(test_output_is_lost),
        TEST(test_output_of_a_check),
        TEST(test_ends_of_an_elastic_job),
        TEST(test_an_elastic_job_ended_from_outside),
        TEST(test_roles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
