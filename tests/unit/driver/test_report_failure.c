/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "driver/job_fixture.h"
#include "driver/tell/tell.h"

/* How many ranks hvdrun terminated, beside those that the block names. */

static enum exit_role roles[4];

static enum exit_role role_of(const struct job *job, int seat)
{
    (void)job;
    return roles[seat];
}

/* The last line for a job of `size` ranks with these roles; seat 0 is the cause. */
static void expect_last(struct fixture *f, int size, bool likely, const char *wanted)
{
    static const struct job_kind kind = {.has_workers = true, .role = role_of};
    const struct job_kind *before = f->job.kind;
    const char *last;
    rank_table_seat(&f->job.ranks, 3)->joined = f->job.epoch; /* there may be one more */
    int all = f->job.ranks.size;
    f->job.ranks.size = size;
    f->job.kind = &kind;
    f->job.verdict = (struct verdict){.status = 1, .cause = CAUSE_EXIT, .likely = likely};
    f->job.verdict.first_seat = 1;
    buf_clear(&f->block);
    report_failure(&f->job, &f->block);
    last = strstr(buf_text(&f->block), "hvdrun: terminated");
    assert_string_equal(last == NULL ? "" : last, wanted);
    f->job.ranks.size = all;
    f->job.kind = before;
}

static void set_roles(enum exit_role second, enum exit_role third, enum exit_role fourth)
{
    roles[0] = ROLE_CAUSE;
    roles[1] = second;
    roles[2] = third;
    roles[3] = fourth;
}

static void test_the_other_ranks(void **state)
{
    struct fixture *f = *state;
    set_roles(ROLE_CONSEQUENCE, ROLE_CONSEQUENCE, ROLE_CONSEQUENCE);
    expect_last(f, 1, false, "");
    expect_last(f, 2, false, "hvdrun: terminated the other rank\n");
    expect_last(f, 4, false, "hvdrun: terminated the other 3 ranks\n");
    set_roles(ROLE_CONSEQUENCE, ROLE_OK, ROLE_CONSEQUENCE);
    expect_last(f, 3, false, "hvdrun: terminated 1 other rank\n");
    expect_last(f, 4, false, "hvdrun: terminated 2 other ranks\n");
}

/* With a likely cause, the first failure is named, too. */
static void test_after_a_likely_cause(void **state)
{
    struct fixture *f = *state;
    set_roles(ROLE_FAILED, ROLE_CONSEQUENCE, ROLE_CONSEQUENCE);
    expect_last(f, 2, true, "");
    expect_last(f, 3, true, "hvdrun: terminated the other rank\n");
    expect_last(f, 4, true, "hvdrun: terminated the other 2 ranks\n");
    set_roles(ROLE_FAILED, ROLE_OK, ROLE_CONSEQUENCE);
    expect_last(f, 4, true, "hvdrun: terminated 1 other rank\n");
}

/* The workers of earlier epochs of an elastic job do not count. */
static void test_earlier_epochs(void **state)
{
    struct fixture *f = *state;
    set_roles(ROLE_CONSEQUENCE, ROLE_CONSEQUENCE, ROLE_FAILED);
    rank_table_seat(&f->job.ranks, 3);
    f->job.ranks.records[2].joined = f->job.ranks.records[3].joined = f->job.epoch;
    f->job.epoch++;
    f->job.ranks.records[0].joined = f->job.ranks.records[1].joined = f->job.epoch;
    expect_last(f, 3, false, "hvdrun: terminated the other rank\n");
    assert_null(strstr(buf_text(&f->block), "failed on its own"));
}

/* A cause that outlived the first failure may still be killed by somebody else. */
static void test_who_ended_it(void **state)
{
    struct fixture *f = *state;
    rank_table_seat(&f->job.ranks, 3); /* the table grows no more */
    struct rank_record *cause = &f->job.ranks.records[0];
    set_roles(ROLE_FAILED, ROLE_OK, ROLE_OK);
    cause->state = RANK_FINISHED;
    cause->signaled = true;
    cause->code = SIGKILL;
    cause->ended_ns = 2000;
    f->job.ranks.records[1].ended_ns = 1000;
    expect_last(f, 2, true, "");
    assert_non_null(strstr(buf_text(&f->block), "SIGKILL"));
    assert_null(strstr(buf_text(&f->block), "terminated by hvdrun"));
    cause->ended_by_us = true;
    expect_last(f, 2, true, "");
    assert_non_null(strstr(buf_text(&f->block), "terminated by hvdrun"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_the_other_ranks),
        TEST(test_after_a_likely_cause),
        TEST(test_earlier_epochs),
        TEST(test_who_ended_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
