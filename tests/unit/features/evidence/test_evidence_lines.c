/* SPDX-License-Identifier: Apache-2.0 */
/* lines.txt: what each rank wrote last. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "driver/job_fixture.h"
#include "driver/tell/recent.h"
#include "features/evidence/evidence_json_driver.h"

static int begin(void **state)
{
    if (setup(state) < 0)
        return -1;
    struct fixture *f = *state;
    f->job.own[PART_recent] = recent_create(RECENT_BYTES);
    f->job.own[PART_rank_tails] = rank_tails_create(3);
    return 0;
}

static int end(void **state)
{
    struct fixture *f = *state;
    recent_destroy(job_part(&f->job, recent));
    rank_tails_destroy(job_part(&f->job, rank_tails));
    return teardown(state);
}

/* A whole piece, as the job takes it in. */
static void writes(struct fixture *f, int rank, bool is_stderr, const char *text)
{
    struct recent_piece piece = {
        .rank = rank, .is_stderr = is_stderr, .text = text, .length = strlen(text)};
    recent_add(job_part(&f->job, recent), &piece);
    rank_tails_add(job_part(&f->job, rank_tails), &piece);
    if (is_stderr && rank >= 0)
        tail_add(&f->job.ranks.records[rank].tail, text, strlen(text), SECOND);
}

static void expect(struct fixture *f, size_t limit, const char *wanted)
{
    struct buf text AUTO_BUF = BUF_INIT(limit);
    evidence_lines(&f->job, &text);
    assert_string_equal(buf_text(&text), wanted);
}

#define LARGE ((size_t)1 << 20)

static void test_nothing_was_written(void **state)
{
    struct fixture *f = *state;
    expect(f, LARGE, "last lines of all:\n");
    int size = f->job.ranks.size;
    f->job.ranks.size = 0; /* nobody has a rank yet */
    expect(f, LARGE, "last lines of all:\n");
    f->job.ranks.size = size;
}

static void test_lines_of_all(void **state)
{
    struct fixture *f = *state;
    writes(f, 1, true, "no such file\n");
    writes(f, 2, false, "step 1\nstep 2\n");
    writes(f, 0, false, "unfinished");
    writes(f, RECENT_LAUNCHER, true, "hvdrun: rank 1 failed\n");
    expect(f, LARGE,
           "last lines of stderr, rank 1 on a:\n    no such file\n"
           "last lines of stdout, rank 0 on a:\n    unfinished\n"
           "last lines of stdout, rank 2 on b:\n    step 1\n    step 2\n"
           "last lines of all:\n[1]<stderr>:no such file\n[2]<stdout>:step 1\n"
           "[2]<stdout>:step 2\n[0]<stdout>:unfinished\nhvdrun: rank 1 failed\n");
}

/* The line that says so belongs to a message of hvdrun, not to the rank. */
static void test_a_stream_that_was_silent(void **state)
{
    struct fixture *f = *state;
    struct tail *tail = &f->job.ranks.records[0].tail;
    tail_add(tail, "before\n", 7, SECOND);
    tail_elsewhere(tail, 100 * SECOND);
    tail_add(tail, "after\n", 6, 200 * SECOND);
    expect(f, LARGE,
           "last lines of stderr, rank 0 on a:\n    before\n    after\nlast lines of all:\n");
}

/* Of an elastic job: one worker of rank 1 was on seat 1, and the next one is on seat 2. */
static void test_many_epochs(void **state)
{
    struct fixture *f = *state;
    struct job_kind kind = *f->job.kind;
    kind.many_epochs = true;
    f->job.kind = &kind;
    f->job.ranks.records[0].rank = -1; /* not placed */
    f->job.ranks.records[1].epoch = 1;
    f->job.ranks.records[2].epoch = 2;
    f->job.ranks.records[2].rank = 1;
    writes(f, 1, true, "of the first\n");
    writes(f, 1, false, "printed\n");
    writes(f, 1, true, "of the second\n");
    expect(f, LARGE,
           "last lines of stderr, rank 1 on b:\n    of the first\n    of the second\n"
           "last lines of stdout, rank 1 on b:\n    printed\n"
           "last lines of all:\n[1]<stderr>:of the first\n[1]<stdout>:printed\n"
           "[1]<stderr>:of the second\n");
}

/* Each rank has the same room, and what is too long begins with a whole line. */
static void test_room(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 100; i++) {
        char line[16];
        snprintf(line, sizeof(line), "line %02d\n", i);
        writes(f, 0, true, line);
    }
    writes(f, 1, true, "short\n");
    struct buf text AUTO_BUF = BUF_INIT(3 * RECENT_BYTES + (size_t)6 * 24); /* two lines for each */
    evidence_lines(&f->job, &text);
    assert_non_null(strstr(buf_text(&text), "rank 0 on a:\n    line 98\n    line 99\nlast lines of "
                                            "stderr, rank 1 on a:\n    short\nlast lines of all:"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_nothing_was_written, begin, end),
        cmocka_unit_test_setup_teardown(test_lines_of_all, begin, end),
        cmocka_unit_test_setup_teardown(test_a_stream_that_was_silent, begin, end),
        cmocka_unit_test_setup_teardown(test_many_epochs, begin, end),
        cmocka_unit_test_setup_teardown(test_room, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
