/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <signal.h>
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
            .took_part = true, .rank = i, .node = i / 3, .uncertainty_ns = i < 3 ? 0 : 2 * MS};
    return f;
}

static void says(struct fixture *f, int rank, const char *text, int64_t ms)
{
    tail_add(&f->tails[rank], text, strlen(text), ms * MS);
}

static void exits(struct fixture *f, int rank, int code, int64_t ms)
{
    f->ranks[rank].ended = true;
    f->ranks[rank].finished = true;
    f->ranks[rank].clean = code == 0;
    f->ranks[rank].may_follow = code != 0;
    f->ranks[rank].ended_ns = f->ranks[rank].ending_ns = ms * MS;
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

/* It is a consequence, and one cannot tell of what. */
static void cannot_tell(struct fixture *f)
{
    struct root_cause cause = find(f);
    assert_int_equal(cause.kind, ROOT_CAUSE_UNKNOWN);
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
    cannot_tell(&f);

    f = failed_job(CLOSED); /* after it, and so perhaps because of it */
    says(&f, 2, TRACE "ValueError: bad row\n", 1001);
    cannot_tell(&f);

    f = failed_job(CLOSED); /* somebody blamed a peer before */
    says(&f, 1, TRACE CLOSED, 800);
    says(&f, 2, TRACE "ValueError: bad row\n", 900);
    cannot_tell(&f);

    f = failed_job(CLOSED); /* two errors at once */
    says(&f, 1, TRACE "ValueError: bad row\n", 900);
    says(&f, 2, TRACE "KeyError: 'x'\n", 901);
    cannot_tell(&f);

    f = failed_job(CLOSED); /* one whose errors cannot be ordered */
    says(&f, 1, CLOSED TRACE "KeyError: 'x'\n", 900);
    says(&f, 2, TRACE "ValueError: bad row\n", 800);
    cannot_tell(&f);

    f = failed_job(CLOSED); /* it went on */
    says(&f, 2, TRACE "ValueError: bad row\n", -5000);
    says(&f, 2, "epoch 3\n", 500);
    cannot_tell(&f);

    f = failed_job(CLOSED); /* it had failed long before: in another epoch */
    says(&f, 2, TRACE "ValueError: bad row\n", 900);
    exits(&f, 2, 1, 910);
    cannot_tell(&f);

    f = failed_job(CLOSED);
    says(&f, 2, TRACE "ValueError: bad row\n", 900);
    f.ranks[2].took_part = false;
    cannot_tell(&f);
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
    cannot_tell(&f);
    f = failed_job(CLOSED); /* 1 ms for the agent, 2 ms for the clocks */
    says(&f, 4, TRACE "ValueError: bad row\n", 900);
    says(&f, 1, TRACE "KeyError: 'x'\n", 903);
    cannot_tell(&f);
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
        cannot_tell(&f);
    }
}

static void an_early_exit(void **state)
{
    (void)state;
    static const int64_t times[] = {-4000, 900, 1005, 1009};
    for (size_t i = 0; i < 4; i++) {
        struct fixture f = failed_job(CLOSED);
        exits(&f, 2, 0, times[i]);
        finds(&f, 2, NULL);
    }
    struct fixture f = failed_job(TIMED_OUT);
    exits(&f, 2, 0, -30 * 60000);
    finds(&f, 2, NULL);
}

/* It was ending when the agent saw the first exit, because of that one or before it. */
static void an_exit_at_the_same_time(void **state)
{
    (void)state;
    static const char *const blames[] = {
        CLOSED, "ConnectionResetError: [Errno 104] Connection reset by peer\n"};
    for (size_t i = 0; i < 2; i++) {
        struct fixture f = failed_job(blames[i]);
        exits(&f, 2, 0, 1010);
        struct root_cause cause = find(&f);
        assert_int_equal(cause.kind, ROOT_CAUSE_UNKNOWN);
        assert_int_equal(cause.seat, -1);
        assert_int_equal(cause.tied, 2);
    }
    struct fixture f = failed_job(CLOSED); /* one was before, and may have done no harm */
    exits(&f, 1, 0, 900);
    exits(&f, 2, 0, 1010);
    struct root_cause cause = find(&f);
    assert_int_equal(cause.kind, ROOT_CAUSE_UNKNOWN);
    assert_int_equal(cause.tied, 2);
    f = failed_job(CLOSED); /* several */
    exits(&f, 1, 0, 1010);
    exits(&f, 2, 0, 1010);
    cause = find(&f);
    assert_int_equal(cause.kind, ROOT_CAUSE_UNKNOWN);
    assert_true(cause.tied < 0);
    f = failed_job("ConnectionResetError: [Errno 104] Connection reset by peer\n");
    exits(&f, 2, 0, 1011); /* afterwards */
    finds_nothing(&f);
}

/* A rank fails without a word, and its peer ends before it. A third one was done before. */
static void an_early_exit_and_a_failure(void **state)
{
    (void)state;
    struct fixture f = failed_job(CLOSED);
    exits(&f, 1, 0, 900);
    exits(&f, 2, 3, 1110);
    cannot_tell(&f);
    f = failed_job(CLOSED); /* it is too late to be the cause */
    exits(&f, 1, 0, 900);
    exits(&f, 2, 3, 1111);
    finds(&f, 1, NULL);
    f = failed_job(CLOSED); /* but its agent has seen it before */
    exits(&f, 1, 0, 900);
    exits(&f, 2, 3, 5000);
    f.ranks[2].ending_ns = 1010 * MS;
    cannot_tell(&f);
    f = failed_job(CLOSED); /* it says why */
    exits(&f, 1, 0, 900);
    says(&f, 2, CLOSED, 1011);
    exits(&f, 2, 3, 1012);
    finds(&f, 1, NULL);
    f = failed_job(CLOSED); /* hvdrun has ended it */
    exits(&f, 1, 0, 900);
    exits(&f, 2, 3, 1012);
    f.ranks[2].ended_by_us = true;
    finds(&f, 1, NULL);
    f = failed_job(CLOSED); /* it took no part */
    exits(&f, 1, 0, 900);
    exits(&f, 2, 3, 1012);
    f.ranks[2].took_part = false;
    finds(&f, 1, NULL);
}

/* The agent may read it after what a peer wrote because of it. */
static void an_early_exit_and_an_error(void **state)
{
    (void)state;
    struct fixture f = failed_job(CLOSED);
    exits(&f, 1, 0, 900);
    says(&f, 2, TRACE "ValueError: bad row\n", 1100);
    cannot_tell(&f);
    f = failed_job(CLOSED);
    exits(&f, 1, 0, 900);
    says(&f, 2, TRACE "ValueError: bad row\n", 1101);
    finds(&f, 1, NULL);
}

/* The peers of a rank that exits with 0 late may exit with 0 before it. */
static void an_early_exit_and_a_later_one(void **state)
{
    (void)state;
    static const int others[] = {2, 4};
    for (size_t i = 0; i < 2; i++) {
        int64_t late_ms = others[i] == 4 ? 1112 : 1110; /* the clocks, too */
        struct fixture f = failed_job(CLOSED);
        exits(&f, 1, 0, 900);
        exits(&f, others[i], 0, late_ms);
        struct root_cause cause = find(&f);
        assert_int_equal(cause.kind, ROOT_CAUSE_UNKNOWN);
        assert_int_equal(cause.early, 1);
        assert_true(cause.tied < 0);
        f = failed_job(CLOSED);
        exits(&f, 1, 0, 900);
        exits(&f, others[i], 0, late_ms + 1);
        finds(&f, 1, NULL);
    }
}

/* What hvdrun ends may exit with 0. */
static void an_exit_with_0_that_hvdrun_asked_for(void **state)
{
    (void)state;
    static const int64_t times[] = {900, 1010, 1012};
    for (size_t i = 0; i < 3; i++) {
        struct fixture f = failed_job(CLOSED);
        exits(&f, 2, 0, times[i]);
        f.ranks[2].ended_by_us = true;
        struct root_cause cause = find(&f);
        assert_int_equal(cause.kind, ROOT_CAUSE_UNKNOWN);
        assert_true(cause.early < 0);
        assert_true(cause.tied < 0);
        f = failed_job(CLOSED);
        exits(&f, 1, 0, 900);
        exits(&f, 2, 0, times[i]);
        f.ranks[2].ended_by_us = true;
        finds(&f, 1, NULL);
    }
}

/* In an elastic job, the records of ranks that failed earlier stay. */
static void failures_of_an_earlier_epoch(void **state)
{
    (void)state;
    struct fixture f = failed_job(CLOSED); /* without a word */
    exits(&f, 1, 0, 900);
    exits(&f, 2, 3, 800);
    finds(&f, 1, NULL);
    f = failed_job(CLOSED); /* a crash */
    exits(&f, 1, 0, 900);
    exits(&f, 2, SIGSEGV, 800);
    f.ranks[2].may_follow = false;
    finds(&f, 1, NULL);
    f = failed_job(CLOSED); /* it is not the only silent one of this epoch */
    exits(&f, 2, 3, 800);
    for (int i = 3; i < RANKS; i++)
        says(&f, i, CLOSED, 1000);
    says(&f, 1, CLOSED, 1000);
    cannot_tell(&f);
    f = failed_job("ConnectionResetError: [Errno 104] Connection reset by peer\n");
    exits(&f, 2, 3, 800); /* nothing tells that the peer was a rank */
    finds_nothing(&f);
    f = failed_job(CLOSED); /* what it said of a peer was of another one */
    says(&f, 2, CLOSED, 790);
    exits(&f, 1, 0, 950);
    exits(&f, 2, 1, 800);
    finds(&f, 1, NULL);
}

/* A rank that aborts the job may end last. What fails before that is of the same epoch. */
static void a_failure_before_the_end_of_an_abort(void **state)
{
    (void)state;
    struct fixture f = failed_job(CLOSED);
    exits(&f, 0, 1, 3000);
    exits(&f, 1, 0, 900);
    exits(&f, 2, 3, 1010);
    cannot_tell(&f);
}

/* The exit with 0 is told beside the doubt, if it may be the cause. */
static void an_early_exit_is_told(void **state)
{
    (void)state;
    struct fixture f = failed_job(CLOSED);
    exits(&f, 4, 0, 900);
    exits(&f, 2, 3, 1012);
    struct root_cause cause = find(&f);
    assert_int_equal(cause.kind, ROOT_CAUSE_UNKNOWN);
    assert_int_equal(cause.early, 4);
    f = failed_job(CLOSED); /* too long ago */
    exits(&f, 4, 0, -4001);
    exits(&f, 2, 3, 1012);
    assert_true(find(&f).early < 0);
    f = failed_job(CLOSED); /* several */
    exits(&f, 4, 0, 900);
    exits(&f, 5, 0, 900);
    assert_true(find(&f).early < 0);
    f = failed_job(CLOSED); /* its clock does not tell that it was before */
    exits(&f, 4, 0, 1008);
    assert_true(find(&f).early < 0);
    f = failed_job("ConnectionResetError: [Errno 104] Connection reset by peer\n");
    exits(&f, 1, 0, 900); /* so the error is about a rank, perhaps */
    exits(&f, 2, 0, 1010);
    exits(&f, 4, 0, 1010);
    cause = find(&f);
    assert_int_equal(cause.kind, ROOT_CAUSE_UNKNOWN);
    assert_int_equal(cause.early, 1);
}

static void an_exit_that_is_not_early(void **state)
{
    (void)state;
    static const int64_t times[] = {-4001, 1011, 60000};
    for (size_t i = 0; i < 3; i++) {
        struct fixture f = failed_job(CLOSED);
        exits(&f, 2, 0, times[i]);
        cannot_tell(&f);
    }
    struct fixture f = failed_job(CLOSED); /* several */
    exits(&f, 1, 0, 800);
    exits(&f, 2, 0, 900);
    cannot_tell(&f);
    f = failed_job(CLOSED); /* another program of the job */
    f.ranks[2].app = 1;
    exits(&f, 2, 0, 900);
    cannot_tell(&f);
    f = failed_job(CLOSED); /* somebody blamed a peer long before */
    says(&f, 1, CLOSED, 700);
    exits(&f, 2, 0, 900);
    cannot_tell(&f);
    f = failed_job(CLOSED); /* an error that is too old to be the cause makes it unclear, too */
    says(&f, 1, TRACE "ValueError: bad row\n", -90000);
    exits(&f, 2, 0, 900);
    cannot_tell(&f);
    f = failed_job(CLOSED); /* on another node, so close that it may have been later */
    exits(&f, 4, 0, 1009);
    cannot_tell(&f);
}

#define LEFT "horovod.common.exceptions.HorovodInternalError: rank 2 has shut the library down\n"
#define SOMEBODY_LEFT "RuntimeError: Horovod has been shut down. This was caused by an exception\n"

static void leaves(struct fixture *f, int seat, bool said)
{
    struct root_cause cause = find(f);
    assert_int_equal(cause.kind, ROOT_CAUSE_LEFT);
    assert_int_equal(cause.seat, seat);
    assert_int_equal(cause.left, said);
}

/* sys.exit() shuts libhvd down before the process ends, and the peers say which rank that was. */
static void a_rank_that_the_others_name(void **state)
{
    (void)state;
    static const int codes[] = {3, 0};
    for (size_t i = 0; i < 2; i++) {
        struct fixture f = failed_job(LEFT);
        exits(&f, 2, codes[i], 1500);
        leaves(&f, 2, true);
    }
    struct fixture f = failed_job(LEFT); /* it still runs, or we have ended it */
    leaves(&f, 2, true);
    f = failed_job(LEFT);
    exits(&f, 2, 143, 4000);
    f.ranks[2].ended_by_us = true;
    leaves(&f, 2, true);

    f = failed_job(LEFT); /* it has an error of a peer itself */
    says(&f, 2, TRACE CLOSED, 990);
    cannot_tell(&f);
    f = failed_job(LEFT); /* two are named */
    says(&f, 1, "rank 3 has shut the library down\n", 1000);
    cannot_tell(&f);
    f = failed_job(LEFT);
    f.ranks[2].took_part = false;
    cannot_tell(&f);
    f = failed_job(LEFT); /* another one failed without a word, and may have been first */
    exits(&f, 3, 1, 1112);
    cannot_tell(&f);
    f = failed_job(LEFT); /* or wrote an error, which its agent may read 0.1 s late */
    says(&f, 3, TRACE "ValueError: bad row\n", 1102);
    cannot_tell(&f);
    f = failed_job(LEFT); /* not so much later */
    says(&f, 3, TRACE "ValueError: bad row\n", 1103);
    exits(&f, 3, 143, 4000);
    exits(&f, 1, 1, 1111);
    leaves(&f, 2, true);
    f = failed_job(LEFT); /* or by hvdrun, or with 0, or of another program or an earlier epoch */
    exits(&f, 1, 0, 1100);
    f.ranks[3].ended_by_us = true;
    exits(&f, 3, 143, 1100);
    f.ranks[4].app = 1;
    exits(&f, 4, 1, 1100);
    f.ranks[5].took_part = false;
    exits(&f, 5, 1, 1100);
    leaves(&f, 2, true);
    f = failed_job(LEFT); /* the named one may fail without a word, or with an error */
    says(&f, 2, TRACE "ValueError: bad row\n", 1001);
    exits(&f, 2, 1, 1500);
    leaves(&f, 2, true);
    f = failed_job(LEFT); /* another one was done before */
    exits(&f, 1, 0, 900);
    leaves(&f, 2, true);
    f = failed_job(LEFT); /* the first exit names a rank that is still there; others name more */
    exits(&f, 1, 0, 900);
    says(&f, 3, "rank 5 has shut the library down\n", 1000);
    cannot_tell(&f);
    f = failed_job(CLOSED); /* only others name it */
    exits(&f, 1, 0, 900);
    says(&f, 3, LEFT, 1000);
    leaves(&f, 2, true);
    f = failed_job(LEFT);
    exits(&f, 2, 0, 900);
    finds(&f, 2, NULL);
    f = failed_job(LEFT); /* a rank of another epoch has this number */
    f.ranks[2].rank = 4;
    f.ranks[4].rank = 2;
    leaves(&f, 4, true);
    f = failed_job(LEFT); /* a failure of an earlier epoch is no suspect */
    exits(&f, 3, 3, 800);
    leaves(&f, 2, true);
    f = failed_job(LEFT); /* nor is its error */
    says(&f, 3, TRACE "ValueError: bad row\n", 790);
    exits(&f, 3, 1, 800);
    leaves(&f, 2, true);
}

/* Each of the ranks 1, 3, 4 and 5 says that a peer has gone, and exits after rank 0. */
static struct fixture all_but_rank_2(const char *blame)
{
    struct fixture f = failed_job(blame);
    for (int rank = 1; rank < RANKS; rank++) {
        if (rank == 2)
            continue;
        says(&f, rank, TRACE, 1001);
        says(&f, rank, blame, 1001);
        exits(&f, rank, 1, 1015);
    }
    return f;
}

static void the_only_rank_that_blames_no_peer(void **state)
{
    (void)state;
    struct fixture f = all_but_rank_2(CLOSED);
    exits(&f, 2, 3, 1400);
    leaves(&f, 2, false);
    f = all_but_rank_2(CLOSED); /* it may be finished, or be about to blame a peer */
    exits(&f, 2, 0, 1400);
    cannot_tell(&f);
    f = all_but_rank_2(CLOSED);
    cannot_tell(&f);
    f = all_but_rank_2(CLOSED);
    exits(&f, 2, 143, 4000);
    f.ranks[2].ended_by_us = true;
    cannot_tell(&f);

    static const int codes[] = {3, 0};
    for (size_t i = 0; i < 2; i++) {
        f = all_but_rank_2(SOMEBODY_LEFT);
        exits(&f, 2, codes[i], 1400);
        leaves(&f, 2, true);
    }
    f = all_but_rank_2(SOMEBODY_LEFT);
    leaves(&f, 2, true);

    f = all_but_rank_2("ConnectionResetError: [Errno 104] Connection reset by peer\n");
    exits(&f, 2, 3, 1400);
    cannot_tell(&f); /* that may be any service */
    f = failed_job("ConnectionResetError: [Errno 104] Connection reset by peer\n");
    exits(&f, 2, 0, 1400);
    finds_nothing(&f); /* and most likely is, if all is well with the others */
    f = failed_job("ConnectionResetError: [Errno 104] Connection reset by peer\n");
    exits(&f, 2, 3, 1400);
    cannot_tell(&f);
    f = all_but_rank_2(CLOSED);
    tail_destroy(&f.tails[4]); /* it may be the one as well */
    f.tails[4] = (struct tail){0};
    exits(&f, 2, 3, 1400);
    cannot_tell(&f);
    f = all_but_rank_2(CLOSED); /* what went wrong there may be the cause, too */
    says(&f, 3, "Fatal Python error: row 7 is broken\n", 1002);
    exits(&f, 2, 3, 1400);
    cannot_tell(&f);
}

/* An agent on a busy machine sees an end late, so a victim of a crash may seem to be first. */
static void a_crash_that_is_seen_late(void **state)
{
    (void)state;
    static const int64_t times[] = {1110, 1111};
    for (size_t i = 0; i < 2; i++) {
        struct fixture f = failed_job(CLOSED);
        exits(&f, 1, 1, 1200);
        exits(&f, 2, 1, times[i]);
        f.ranks[1].may_follow = f.ranks[2].may_follow = false;
        struct root_cause cause = find(&f);
        assert_int_equal(cause.kind, i == 0 ? ROOT_CAUSE_CRASH : ROOT_CAUSE_UNKNOWN);
        assert_int_equal(cause.seat, i == 0 ? 2 : -1);
    }
    struct fixture f = failed_job(CLOSED); /* its agent saw that it was ending, in time */
    exits(&f, 1, 1, 1105);
    exits(&f, 2, 1, 5000);
    f.ranks[2].ending_ns = 1100 * MS;
    f.ranks[1].may_follow = f.ranks[2].may_follow = false;
    assert_int_equal(find(&f).seat, 2);
    f = failed_job(CLOSED); /* the earlier one; not one that we have ended */
    exits(&f, 1, 1, 1040);
    exits(&f, 2, 1, 1020);
    exits(&f, 4, 1, 1015);
    f.ranks[1].may_follow = f.ranks[2].may_follow = f.ranks[4].may_follow = false;
    f.ranks[4].ended_by_us = true;
    struct root_cause cause = find(&f);
    assert_int_equal(cause.kind, ROOT_CAUSE_CRASH);
    assert_int_equal(cause.seat, 2);
}

static bool comes(struct fixture *f)
{
    for (int i = 0; i < RANKS; i++)
        f->ranks[i].tail = &f->tails[i];
    bool result = root_cause_comes(f->ranks, RANKS, 0);
    for (int i = 0; i < RANKS; i++)
        tail_destroy(&f->tails[i]);
    return result;
}

static void a_cause_that_is_still_to_come(void **state)
{
    (void)state;
    struct fixture f = failed_job(CLOSED);
    assert_true(comes(&f));
    f = failed_job(CLOSED); /* ended, and its output may still say something */
    for (int rank = 1; rank < RANKS; rank++)
        exits(&f, rank, 1, 1020);
    f.ranks[3].finished = false;
    for (int rank = 1; rank < RANKS; rank++)
        says(&f, rank, CLOSED, 1010);
    assert_true(comes(&f));

    f = all_but_rank_2(CLOSED);
    exits(&f, 2, 3, 1400);
    assert_false(comes(&f));
    f = all_but_rank_2(CLOSED);
    exits(&f, 2, 0, 1400);
    assert_false(comes(&f));
    f = all_but_rank_2(CLOSED); /* killed */
    exits(&f, 2, 1, 1400);
    f.ranks[2].may_follow = f.ranks[2].finished = false;
    assert_false(comes(&f));
    f = failed_job(CLOSED);
    says(&f, 2, TRACE "ValueError: bad row\n", 900);
    assert_false(comes(&f));
    f = failed_job(TIMED_OUT); /* who does not answer does not end soon */
    assert_false(comes(&f));
    f = failed_job("BrokenPipeError: [Errno 32] Broken pipe\n");
    assert_false(comes(&f));
    f = job(); /* an error of its own */
    says(&f, 0, TRACE "ValueError: bad row\n", 900);
    exits(&f, 0, 1, 1010);
    assert_false(comes(&f));
}

static bool follows(const char *text, int node, const struct exit_loss *loss)
{
    struct fixture f = failed_job(text);
    f.ranks[0].tail = &f.tails[0];
    f.ranks[0].uncertainty_ns = MS;
    bool result = root_cause_follows(&f.ranks[0], node, loss);
    tail_destroy(&f.tails[0]);
    return result;
}

static void a_failure_that_followed_from_a_loss(void **state)
{
    (void)state;
    struct exit_loss loss = {.alive_ns = 1003 * MS, .uncertainty_ns = 2 * MS, .by_ns = 1500 * MS};
    assert_true(follows(CLOSED, 1, &loss));
    assert_true(follows(TIMED_OUT, 1, &loss));
    assert_false(follows("ValueError: bad row\n", 1, &loss));
    assert_false(follows(CLOSED, 0, &loss)); /* the agent of its own node lived longer */
    loss.alive_ns++;
    assert_false(follows(CLOSED, 1, &loss));
    loss = (struct exit_loss){.alive_ns = INT64_MIN, .uncertainty_ns = INT64_MAX, .silent = true};
    assert_true(follows(TIMED_OUT, 1, &loss));
    assert_false(follows(CLOSED, 1, &loss));

    struct root_cause_rank killed = {.node = 1, .killed = true, .ended_ns = 1000 * MS};
    loss = (struct exit_loss){.alive_ns = 1499 * MS};
    assert_true(root_cause_follows(&killed, 1, &loss));
    loss.alive_ns = 1500 * MS;
    assert_false(root_cause_follows(&killed, 1, &loss));
    loss.alive_ns = 1000 * MS;
    killed.ended_by_us = true;
    assert_false(root_cause_follows(&killed, 1, &loss));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_error_before),
        cmocka_unit_test(the_first_exit_is_the_cause),
        cmocka_unit_test(no_clear_case),
        cmocka_unit_test(the_first_of_several_errors),
        cmocka_unit_test(two_clocks),
        cmocka_unit_test(not_too_long_ago),
        cmocka_unit_test(an_early_exit),
        cmocka_unit_test(an_exit_at_the_same_time),
        cmocka_unit_test(an_early_exit_and_a_failure),
        cmocka_unit_test(an_early_exit_and_an_error),
        cmocka_unit_test(an_early_exit_and_a_later_one),
        cmocka_unit_test(an_exit_with_0_that_hvdrun_asked_for),
        cmocka_unit_test(failures_of_an_earlier_epoch),
        cmocka_unit_test(a_failure_before_the_end_of_an_abort),
        cmocka_unit_test(an_early_exit_is_told),
        cmocka_unit_test(an_exit_that_is_not_early),
        cmocka_unit_test(a_rank_that_the_others_name),
        cmocka_unit_test(the_only_rank_that_blames_no_peer),
        cmocka_unit_test(a_crash_that_is_seen_late),
        cmocka_unit_test(a_cause_that_is_still_to_come),
        cmocka_unit_test(a_failure_that_followed_from_a_loss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
