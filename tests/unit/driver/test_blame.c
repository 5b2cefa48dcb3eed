/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "driver/end/blame.h"
#include "driver/job/job_kind.h"

#define SECOND INT64_C(1000000000)
#define CLOSED "RuntimeError: Connection closed by peer\n"
#define UNKNOWN "; its error is about another rank, and hvdrun cannot tell what failed first"
#define BROKEN "Fatal Python error: row 7 is broken\n"

/* A job of three ranks on this machine. Rank 0 failed first. */
struct fixture {
    struct settings settings;
    struct job_kind kind;
    struct node_link node, *nodes[1];
    struct job job;
    struct verdict verdict;
};

static int setup(void **state)
{
    static struct fixture f;
    f = (struct fixture){.node = {.same_clock = true}};
    f.nodes[0] = &f.node;
    settings_init(&f.settings);
    f.job = (struct job){.settings = &f.settings,
                         .kind = &f.kind,
                         .nodes = f.nodes,
                         .node_count = 1,
                         .times.started_ns = SECOND};
    rank_table_init(&f.job.ranks, 3);
    for (int rank = 0; rank < 3; rank++) {
        f.job.ranks.records[rank].epoch = 1;
        f.job.ranks.records[rank].rank = rank;
        rank_started(&f.job.ranks, rank, 100 + rank, SECOND);
    }
    f.verdict = (struct verdict){.status = 1, .cause = CAUSE_EXIT};
    snprintf(f.verdict.explanation, sizeof(f.verdict.explanation), "rank 0 exited with code 1");
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    rank_table_destroy(&f->job.ranks);
    settings_destroy(&f->settings);
    return 0;
}

static void says(struct fixture *f, int rank, const char *text, int64_t when_ns)
{
    tail_add(&f->job.ranks.records[rank].tail, text, strlen(text), when_ns);
}

static struct rank_record *ends(struct fixture *f, int rank, int code, int64_t when_ns)
{
    assert_true(rank_exited(&f->job.ranks, rank, when_ns));
    f->job.ranks.records[rank].code = code;
    return &f->job.ranks.records[rank];
}

static void expect(struct fixture *f, int seat, int status, const char *explanation)
{
    blame_refine(&f->job, &f->verdict);
    assert_string_equal(f->verdict.explanation, explanation);
    assert_int_equal(f->verdict.likely, seat != 0);
    assert_int_equal(f->verdict.seat, seat);
    assert_int_equal(f->verdict.first_seat, 0);
    assert_int_equal(f->verdict.status, status);
}

#define NAMED                                                                       \
    "rank 2 is most likely the cause: Fatal Python error: row 7 is broken; rank 0 " \
    "exited with code 1"

static void test_the_rank_that_wrote_an_error(void **state)
{
    struct fixture *f = *state;
    says(f, 2, BROKEN, 2 * SECOND);
    says(f, 0, CLOSED, 3 * SECOND);
    ends(f, 0, 1, 4 * SECOND);
    struct rank_record *record = ends(f, 2, SIGTERM, 5 * SECOND);
    record->signaled = record->ended_by_us = true;
    expect(f, 2, 1, NAMED);
}

static void code_of_the_cause(struct fixture *f, int code, int status)
{
    says(f, 2, BROKEN, 2 * SECOND);
    says(f, 0, CLOSED, 3 * SECOND);
    ends(f, 0, 1, 4 * SECOND);
    ends(f, 2, code, 5 * SECOND);
    expect(f, 2, status, NAMED);
}

static void test_status_of_the_cause(void **state)
{
    code_of_the_cause(*state, 7, 7);
}

static void test_code_that_says_terminated(void **state)
{
    code_of_the_cause(*state, 128 + SIGTERM, 1);
}

static void test_status_that_was_asked_for(void **state)
{
    struct fixture *f = *state;
    f->settings.exit_policy = EXIT_MAX;
    code_of_the_cause(f, 7, 1);
}

static void test_early_exit(void **state)
{
    struct fixture *f = *state;
    ends(f, 1, 0, 2 * SECOND);
    says(f, 0, CLOSED, 3 * SECOND);
    ends(f, 0, 1, 4 * SECOND);
    expect(f, 1, 1,
           "rank 1 is most likely the cause: it exited with code 0 before its peers; rank 0 exited "
           "with code 1");
}

/* A rank that fails without a word may be the cause, too, if its agent saw it ending in time. */
static void test_early_exit_beside_a_failure(void **state)
{
    struct fixture *f = *state;
    ends(f, 1, 0, 2 * SECOND);
    says(f, 0, CLOSED, 3 * SECOND);
    ends(f, 0, 1, 4 * SECOND);
    ends(f, 2, 3, 5 * SECOND)->ending_ns = 4 * SECOND;
    expect(f, 0, 1,
           "rank 0 exited with code 1; its error is about another rank, rank 1 exited with code 0 "
           "2.0 s before, and hvdrun cannot tell what failed first");
}

static void test_exit_just_before_a_failure(void **state)
{
    struct fixture *f = *state;
    ends(f, 1, 0, 4 * SECOND - 1);
    says(f, 0, CLOSED, 4 * SECOND);
    ends(f, 0, 1, 4 * SECOND);
    ends(f, 2, 3, 4 * SECOND);
    expect(f, 0, 1,
           "rank 0 exited with code 1; its error is about another rank, rank 1 exited with code 0 "
           "just before, and hvdrun cannot tell what failed first");
}

#define LEFT "horovod.common.exceptions.HorovodInternalError: rank 1 has shut the library down\n"

static void rank_1_has_left(struct fixture *f, int code, int status, const char *how)
{
    char text[200];
    says(f, 0, LEFT, 3 * SECOND);
    ends(f, 0, 1, 4 * SECOND);
    if (code >= 0)
        ends(f, 1, code, 5 * SECOND);
    snprintf(text, sizeof(text), "rank 1 is most likely the cause: %s; rank 0 exited with code 1",
             how);
    expect(f, 1, status, text);
}

static void test_left_with_a_code(void **state)
{
    rank_1_has_left(*state, 3, 3, "it had shut its library down and exited with code 3");
}

static void test_left_with_0(void **state)
{
    rank_1_has_left(*state, 0, 1, "it had shut its library down and exited with code 0");
}

static void test_left_and_still_there(void **state)
{
    rank_1_has_left(*state, -1, 1, "it had shut its library down");
}

static void test_the_only_one_that_blames_no_peer(void **state)
{
    struct fixture *f = *state;
    says(f, 0, CLOSED, 3 * SECOND);
    ends(f, 0, 1, 4 * SECOND);
    says(f, 2, CLOSED, 3 * SECOND);
    ends(f, 2, 1, 4 * SECOND);
    ends(f, 1, 3, 5 * SECOND);
    expect(f, 1, 3,
           "rank 1 is most likely the cause: it exited with code 3, and only it blames no peer; "
           "rank 0 exited with code 1");
}

/* Only an exit that can follow from a peer's end is looked at. */
static void test_crashes_are_causes(void **state)
{
    struct fixture *f = *state;
    says(f, 2, BROKEN, 2 * SECOND);
    says(f, 0, CLOSED, 3 * SECOND);
    struct rank_record *first = ends(f, 0, SIGSEGV, 4 * SECOND);
    first->signaled = true;
    expect(f, 0, 1, "rank 0 exited with code 1");
    first->code = SIGABRT;
    f->verdict.cause = CAUSE_NODE_LOST;
    expect(f, 0, 1, "rank 0 exited with code 1");
    f->verdict.cause = CAUSE_SIGNAL;
    expect(f, 2, 1, NAMED);
}

static void test_workers_of_an_earlier_epoch(void **state)
{
    struct fixture *f = *state;
    says(f, 2, BROKEN, 2 * SECOND);
    ends(f, 2, 0, 2 * SECOND);
    f->job.times.started_ns = 2 * SECOND + 1;
    says(f, 0, CLOSED, 3 * SECOND);
    ends(f, 0, 1, 4 * SECOND);
    expect(f, 0, 1, "rank 0 exited with code 1" UNKNOWN);
}

static void test_a_long_explanation(void **state)
{
    struct fixture *f = *state;
    memset(f->verdict.explanation, 'x', sizeof(f->verdict.explanation) - 1);
    says(f, 2, BROKEN, 2 * SECOND);
    says(f, 0, CLOSED, 3 * SECOND);
    ends(f, 0, 1, 4 * SECOND);
    blame_refine(&f->job, &f->verdict);
    assert_int_equal(strlen(f->verdict.explanation), sizeof(f->verdict.explanation) - 1);
    assert_memory_equal(f->verdict.explanation, "rank 2 is", 9);
}

/* Clocks that were never compared do not tell who was first. */
static void test_clocks_that_disagree(void **state)
{
    struct fixture *f = *state;
    struct node_link other = {.index = 1}, *nodes[] = {&f->node, &other};
    f->job.nodes = nodes;
    f->job.node_count = 2;
    f->job.ranks.records[2].node = 1;
    says(f, 2, BROKEN, 2 * SECOND);
    says(f, 0, CLOSED, 3 * SECOND);
    ends(f, 0, 1, 4 * SECOND);
    expect(f, 0, 1, "rank 0 exited with code 1" UNKNOWN);
}

static void keep_line(void *context, enum log_level level, const char *line)
{
    struct buf *out = context;
    assert_int_equal(level, LOG_NOTICE);
    buf_printf(out, "%s\n", line);
}

/* A job that goes on says at once what most likely ended a worker: of the first failure alone. */
static void test_while_the_job_runs(void **state)
{
    static const char said[] =
        "rank 2 is most likely the cause: Fatal Python error: row 7 is broken\n";
    struct fixture *f = *state;
    struct buf lines AUTO_BUF = BUF_INIT(10000);
    f->job.log = (struct log){LOG_DEBUG, keep_line, &lines};
    f->job.state = JOB_RUNNING;
    says(f, 2, BROKEN, 2 * SECOND);
    says(f, 0, CLOSED, 3 * SECOND);
    says(f, 1, CLOSED, 3 * SECOND);
    ends(f, 0, 1, 4 * SECOND);
    blame_say(&f->job, 0); /* a static job says it at its end */
    assert_string_equal(buf_text(&lines), "");
    f->kind.many_epochs = true;
    blame_say(&f->job, 0);
    assert_string_equal(buf_text(&lines), said);
    ends(f, 1, 1, 5 * SECOND);
    blame_say(&f->job, 1);
    assert_string_equal(buf_text(&lines), said);
    f->job.ranks.records[0].code = 0; /* as if it had not failed */
    blame_say(&f->job, 1);
    assert_true(lines.length > strlen(said));
    buf_clear(&lines);
    tail_destroy(&f->job.ranks.records[2].tail);
    f->job.ranks.records[2].tail = (struct tail){.ring = NULL};
    blame_say(&f->job, 0);
    assert_string_equal(buf_text(&lines), ""); /* nothing is known */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_the_rank_that_wrote_an_error),
        TEST(test_status_of_the_cause),
        TEST(test_code_that_says_terminated),
        TEST(test_status_that_was_asked_for),
        TEST(test_early_exit),
        TEST(test_early_exit_beside_a_failure),
        TEST(test_exit_just_before_a_failure),
        TEST(test_left_with_a_code),
        TEST(test_left_with_0),
        TEST(test_left_and_still_there),
        TEST(test_the_only_one_that_blames_no_peer),
        TEST(test_crashes_are_causes),
        TEST(test_workers_of_an_earlier_epoch),
        TEST(test_a_long_explanation),
        TEST(test_clocks_that_disagree),
        TEST(test_while_the_job_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
