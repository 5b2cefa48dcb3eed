/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/exit/root_cause.h"

#define MS INT64_C(1000000)
#define MINUTE (60000 * MS)
#define RANKS 6

#define CLOSED "RuntimeError: Connection closed by peer [10.0.0.1]:33502\n"
#define TIMED_OUT "RuntimeError: Timed out waiting 1800000ms for recv operation to complete\n"
#define TRACE "Traceback (most recent call last):\n  File \"x.py\", line 1, in <module>\n"

/* Ranks 0 1 2 on one node, 3 4 5 on another whose clock is known to 2 ms. Times are milliseconds.
 * Rank 0 exits first. */
struct fixture {
    struct root_cause_rank ranks[RANKS];
    struct tail tails[RANKS];
};

static struct fixture job(void)
{
    struct fixture f = {0};
    for (int i = 0; i < RANKS; i++)
        f.ranks[i] = (struct root_cause_rank){
            .took_part = true, .node = i / 3, .uncertainty_ns = i < 3 ? 0 : 2 * MS};
    return f;
}

static void says(struct fixture *f, int rank, const char *text, int64_t ms)
{
    tail_add(&f->tails[rank], text, strlen(text), ms * MS);
}

static void exits(struct fixture *f, int rank, int code, int64_t ms)
{
    f->ranks[rank].ended = true;
    f->ranks[rank].clean = code == 0;
    f->ranks[rank].ended_ns = ms * MS;
}

static struct root_cause find(struct fixture *f)
{
    struct root_cause cause;
    for (int i = 0; i < RANKS; i++)
        f->ranks[i].tail = &f->tails[i];
    root_cause_find(f->ranks, RANKS, 0, &cause);
    for (int i = 0; i < RANKS; i++)
        tail_destroy(&f->tails[i]);
    return cause;
}

static void finds(struct fixture *f, int seat, const char *line)
{
    struct root_cause cause = find(f);
    assert_int_equal(cause.kind, line != NULL ? ROOT_CAUSE_ERROR : ROOT_CAUSE_EARLY_EXIT);
    assert_int_equal(cause.seat, seat);
    if (line != NULL)
        assert_string_equal(cause.symptom.line, line);
}

static void finds_nothing(struct fixture *f)
{
    struct root_cause cause = find(f);
    assert_int_equal(cause.kind, ROOT_CAUSE_NONE);
    assert_int_equal(cause.seat, -1);
}

/* Rank 0 blames a peer at 1000 ms and exits first, at 1010 ms. */
static struct fixture failed_job(const char *blame)
{
    struct fixture f = job();
    says(&f, 0, TRACE, 1000);
    says(&f, 0, blame, 1000);
    exits(&f, 0, 1, 1010);
    return f;
}

static void an_error_before(void **state)
{
    (void)state;
    struct fixture f = failed_job(CLOSED);
    says(&f, 2, TRACE "ValueError: bad row\n", 900);
    finds(&f, 2, "ValueError: bad row");

    f = failed_job(CLOSED); /* it exits with a code of its own, later */
    says(&f, 2, TRACE "ValueError: bad row\n", 900);
    exits(&f, 2, 7, 1020);
    says(&f, 1, CLOSED, 950);
    finds(&f, 2, "ValueError: bad row");

    f = failed_job(CLOSED); /* or with 0 */
    says(&f, 2, TRACE "ValueError: bad row\n", 900);
    exits(&f, 2, 0, 920);
    finds(&f, 2, "ValueError: bad row");
}

static void the_first_exit_is_the_cause(void **state)
{
    (void)state;
    struct fixture f = job(); /* nothing said */
    exits(&f, 0, 1, 1010);
    says(&f, 2, TRACE "ValueError: bad row\n", 900);
    finds_nothing(&f);

    f = job(); /* an error of its own */
    says(&f, 0, TRACE "ValueError: other row\n", 1000);
    exits(&f, 0, 1, 1010);
    says(&f, 2, TRACE "ValueError: bad row\n", 900);
    finds_nothing(&f);

    f = job(); /* it cannot be ordered */
    says(&f, 0, TRACE "KeyError: 1\n", 900);
    says(&f, 0, "\nDuring handling of the above exception, another exception occurred:\n", 1000);
    says(&f, 0, TRACE CLOSED, 1000);
    exits(&f, 0, 1, 1010);
    says(&f, 2, TRACE "ValueError: bad row\n", 800);
    finds_nothing(&f);
}

static void no_clear_case(void **state)
{
    (void)state;
    struct fixture f = failed_job(CLOSED); /* nobody else said anything */
    finds_nothing(&f);

    f = failed_job(CLOSED); /* after it, and so perhaps because of it */
    says(&f, 2, TRACE "ValueError: bad row\n", 1001);
    finds_nothing(&f);

    f = failed_job(CLOSED); /* somebody blamed a peer before */
    says(&f, 1, TRACE CLOSED, 800);
    says(&f, 2, TRACE "ValueError: bad row\n", 900);
    finds_nothing(&f);

    f = failed_job(CLOSED); /* two errors at once */
    says(&f, 1, TRACE "ValueError: bad row\n", 900);
    says(&f, 2, TRACE "KeyError: 'x'\n", 901);
    finds_nothing(&f);

    f = failed_job(CLOSED); /* one whose errors cannot be ordered */
    says(&f, 1, CLOSED TRACE "KeyError: 'x'\n", 900);
    says(&f, 2, TRACE "ValueError: bad row\n", 800);
    finds_nothing(&f);

    f = failed_job(CLOSED); /* it went on */
    says(&f, 2, TRACE "ValueError: bad row\n", -5000);
    says(&f, 2, "epoch 3\n", 500);
    finds_nothing(&f);

    f = failed_job(CLOSED); /* it had failed long before: in another epoch */
    says(&f, 2, TRACE "ValueError: bad row\n", 900);
    exits(&f, 2, 1, 910);
    finds_nothing(&f);

    f = failed_job(CLOSED);
    says(&f, 2, TRACE "ValueError: bad row\n", 900);
    f.ranks[2].took_part = false;
    finds_nothing(&f);
}

static void the_first_of_several_errors(void **state)
{
    (void)state;
    struct fixture f = failed_job(CLOSED);
    says(&f, 1, TRACE "KeyError: 'x'\n", 902);
    says(&f, 2, TRACE "ValueError: bad row\n", 900);
    finds(&f, 2, "ValueError: bad row");

    f = failed_job(CLOSED); /* the same error */
    says(&f, 1, TRACE "ValueError: bad row\n", 900);
    says(&f, 2, TRACE "ValueError: bad row\n", 900);
    finds(&f, 1, "ValueError: bad row");
}

/* Times of two nodes must be further apart than their clocks may differ. */
static void two_clocks(void **state)
{
    (void)state;
    struct fixture f = failed_job(CLOSED);
    says(&f, 4, TRACE "ValueError: bad row\n", 997);
    finds(&f, 4, "ValueError: bad row");
    f = failed_job(CLOSED);
    says(&f, 4, TRACE "ValueError: bad row\n", 998);
    finds_nothing(&f);
    f = failed_job(CLOSED); /* 1 ms for the agent, 2 ms for the clocks */
    says(&f, 4, TRACE "ValueError: bad row\n", 900);
    says(&f, 1, TRACE "KeyError: 'x'\n", 903);
    finds_nothing(&f);
    f = failed_job(CLOSED);
    says(&f, 4, TRACE "ValueError: bad row\n", 900);
    says(&f, 1, TRACE "KeyError: 'x'\n", 904);
    finds(&f, 4, "ValueError: bad row");
}

static void not_too_long_ago(void **state)
{
    (void)state;
    static const struct {
        const char *blame;
        int64_t within_ms;
    } limits[] = {{CLOSED, 60000}, {TIMED_OUT, 35 * 60000}};
    for (size_t i = 0; i < 2; i++) {
        struct fixture f = failed_job(limits[i].blame);
        says(&f, 2, TRACE "ValueError: bad row\n", 1000 - limits[i].within_ms);
        finds(&f, 2, "ValueError: bad row");
        f = failed_job(limits[i].blame);
        says(&f, 2, TRACE "ValueError: bad row\n", 999 - limits[i].within_ms);
        finds_nothing(&f);
    }
}

static void an_early_exit(void **state)
{
    (void)state;
    static const int64_t times[] = {-4000, 900, 1005, 1010};
    for (size_t i = 0; i < 4; i++) {
        struct fixture f = failed_job(CLOSED);
        exits(&f, 2, 0, times[i]);
        finds(&f, 2, NULL);
    }
    struct fixture f = failed_job(TIMED_OUT);
    exits(&f, 2, 0, -30 * 60000);
    finds(&f, 2, NULL);
}

static void an_exit_that_is_not_early(void **state)
{
    (void)state;
    static const int64_t times[] = {-4001, 1011, 60000};
    for (size_t i = 0; i < 3; i++) {
        struct fixture f = failed_job(CLOSED);
        exits(&f, 2, 0, times[i]);
        finds_nothing(&f);
    }
    struct fixture f = failed_job(CLOSED); /* several */
    exits(&f, 1, 0, 800);
    exits(&f, 2, 0, 900);
    finds_nothing(&f);
    f = failed_job(CLOSED); /* another program of the job */
    f.ranks[2].app = 1;
    exits(&f, 2, 0, 900);
    finds_nothing(&f);
    f = failed_job(CLOSED); /* somebody blamed a peer long before */
    says(&f, 1, CLOSED, 700);
    exits(&f, 2, 0, 900);
    finds_nothing(&f);
    f = failed_job(CLOSED); /* an error that is too old to be the cause makes it unclear, too */
    says(&f, 1, TRACE "ValueError: bad row\n", -90000);
    exits(&f, 2, 0, 900);
    finds_nothing(&f);
    f = failed_job(CLOSED); /* on another node, so close that it may have been later */
    exits(&f, 4, 0, 1009);
    finds_nothing(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_error_before), cmocka_unit_test(the_first_exit_is_the_cause),
        cmocka_unit_test(no_clear_case),   cmocka_unit_test(the_first_of_several_errors),
        cmocka_unit_test(two_clocks),      cmocka_unit_test(not_too_long_ago),
        cmocka_unit_test(an_early_exit),   cmocka_unit_test(an_exit_that_is_not_early),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
