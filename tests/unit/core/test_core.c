/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "core/core.h"

enum { RANKS = 3, MS = 1000000 };
static const int globals[RANKS] = {2, 5, 7}; /* the set's members in the job */

/* Cores whose messages arrive at once. Names of completed tensors are appended to `log`. */
struct job {
    struct core *cores[RANKS];
    struct buf log[RANKS];
    int messages, warnings;
    int64_t now_ns;
    int done_rank; /* of the last submission that is complete */
};

static void job_create(struct job *job, const struct core_config *base)
{
    *job = (struct job){.now_ns = 0};
    for (int rank = 0; rank < RANKS; rank++) {
        struct core_config config = *base;
        config.rank = rank;
        config.size = RANKS;
        config.ranks = globals;
        config.world_size = 8;
        job->cores[rank] = core_create(&config, 0);
        buf_init(&job->log[rank], 1 << 16);
    }
}

static void job_destroy(struct job *job)
{
    for (int rank = 0; rank < RANKS; rank++) {
        core_destroy(job->cores[rank]);
        buf_destroy(&job->log[rank]);
    }
}

static void take(struct job *job, int rank)
{
    struct action action;
    while (core_take(job->cores[rank], &action)) {
        for (int to = 0; action.kind == ACTION_SEND && to < RANKS; to++) {
            struct error err = ERROR_INIT;
            if (to == rank || (action.to != TO_ALL && action.to != to))
                continue;
            job->messages++;
            assert_int_equal(
                core_receive(job->cores[to], rank, action.bytes, action.length, job->now_ns, &err),
                0);
        }
        for (size_t i = 0; i < action.count; i++)
            buf_printf(&job->log[rank], "%s%s%s", i == 0 ? "" : "+", action.parts[i].request.key,
                       i + 1 == action.count ? ";" : "");
        if (action.kind == ACTION_DONE) {
            buf_printf(&job->log[rank], "%d:%s;", action.status, action.text);
            job->done_rank = action.rank;
        }
        if (action.kind == ACTION_STALL) {
            buf_printf(&job->log[rank], "%s;", action.text);
            assert_int_equal(action.stall.waiting_count + action.stall.missing_count, RANKS);
            assert_int_equal(action.stall.waiting[0], 2);
            assert_int_equal(action.stall.missing[0], 5);
        }
        if (action.kind == ACTION_GOES_ON)
            buf_puts(&job->log[rank], "goes on;");
        if (action.kind == ACTION_ENDED)
            buf_puts(&job->log[rank], "ended;");
        if (action.kind == ACTION_CLOSE)
            buf_puts(&job->log[rank], "close;");
        action_destroy(&action);
    }
}

static void turn_all(struct job *job, int64_t now_ns)
{
    job->now_ns = now_ns;
    for (int round = 0; round < 8; round++)
        for (int rank = 0; rank < RANKS; rank++) {
            struct error err = ERROR_INIT;
            assert_int_equal(core_turn(job->cores[rank], now_ns, &err), 0);
            take(job, rank);
        }
}

static enum hvd_status submit_kind(struct job *job, int rank, enum kind kind, const char *name,
                                   enum hvd_type type, struct error *err)
{
    struct request request = {.key = request_key(kind, name),
                              .kind = kind,
                              .type = type,
                              .op = HVD_SUM,
                              .prescale = 1,
                              .postscale = 1};
    return core_submit(job->cores[rank], &request, job, job->now_ns, err);
}

static void submit(struct job *job, int rank, const char *name)
{
    struct error err = ERROR_INIT;
    assert_int_equal(submit_kind(job, rank, KIND_ALLREDUCE, name, HVD_FLOAT32, &err), HVD_OK);
}

static void expect_log(struct job *job, int rank, const char *text)
{
    assert_string_equal(buf_text(&job->log[rank]), text);
    buf_clear(&job->log[rank]);
}

static const struct core_config usual = {.capacity = 8, .threshold = 1000, .cycle_ns = MS};

static void test_collected_for_the_cycle_time(void **state)
{
    (void)state;
    struct job job;
    job_create(&job, &usual);
    for (int rank = 0; rank < RANKS; rank++) {
        submit(&job, rank, rank == 1 ? "b" : "a");
        submit(&job, rank, rank == 1 ? "a" : "b");
        assert_true(core_deadline(job.cores[rank]) == MS);
    }
    turn_all(&job, MS - 1);
    expect_log(&job, 0, "");
    assert_int_equal(job.messages, 0);
    turn_all(&job, MS);
    for (int rank = 0; rank < RANKS; rank++) {
        expect_log(&job, rank, "ta+tb;");
        assert_true(core_deadline(job.cores[rank]) == INT64_MAX);
    }
    assert_int_equal(job.messages, 4); /* two reports, one decision for two members */
    job_destroy(&job);
}

static void test_a_thread_that_waits_does_not_wait_for_the_cycle(void **state)
{
    (void)state;
    struct job job;
    job_create(&job, &usual);
    for (int rank = 0; rank < RANKS; rank++) {
        submit(&job, rank, "a");
        core_hurry(job.cores[rank], &usual); /* not a token */
        assert_true(core_deadline(job.cores[rank]) == MS);
        core_hurry(job.cores[rank], &job);
        assert_true(core_deadline(job.cores[rank]) == INT64_MIN);
    }
    turn_all(&job, 1);
    expect_log(&job, 2, "ta;");
    job_destroy(&job);
}

static void step_of(struct job *job, const char *first, const char *second, int64_t now_ns)
{
    for (int rank = 0; rank < RANKS; rank++) {
        submit(job, rank, first);
        submit(job, rank, second);
    }
    turn_all(job, now_ns);
}

static void step(struct job *job, int64_t now_ns)
{
    step_of(job, "a", "b", now_ns);
}

/* Three steps teach the plan. Then a group is reported when it is complete, without the cycle. */
static void test_plan(void **state)
{
    (void)state;
    struct job job;
    job_create(&job, &usual);
    for (int i = 1; i <= 5; i++)
        step(&job, i * MS);
    for (int rank = 0; rank < RANKS; rank++)
        buf_clear(&job.log[rank]);
    submit(&job, 1, "a");
    assert_true(core_deadline(job.cores[1]) == 5 * MS + HOLD_CYCLES * MS);
    submit(&job, 1, "b");
    assert_true(core_deadline(job.cores[1]) == INT64_MIN);
    submit(&job, 0, "b");
    submit(&job, 0, "a");
    submit(&job, 2, "a");
    submit(&job, 2, "b");
    int before = job.messages;
    turn_all(&job, 5 * MS);
    expect_log(&job, 2, "ta+tb;");
    assert_int_equal(job.messages - before, 4);
    /* A step that differs: 'b' does not come, and 'a' goes on alone after the hold time. */
    for (int rank = 0; rank < RANKS; rank++)
        submit(&job, rank, "a");
    turn_all(&job, 5 * MS + HOLD_CYCLES * MS - 1);
    expect_log(&job, 1, "ta+tb;");
    turn_all(&job, 5 * MS + HOLD_CYCLES * MS);
    expect_log(&job, 1, "ta;");
    submit(&job, 1, "a"); /* the plan is gone */
    assert_true(core_deadline(job.cores[1]) == job.now_ns + MS);
    job_destroy(&job);
}

/* A plan of one kind of step does not keep another kind from being learned. */
static void test_plan_of_two_kinds_of_steps(void **state)
{
    (void)state;
    struct job job;
    job_create(&job, &usual);
    int64_t now_ns = 0;
    for (int i = 0; i < 5; i++)
        step(&job, now_ns += MS);
    for (int i = 0; i < 5; i++)
        step_of(&job, "c", "d", now_ns += MS);
    submit(&job, 1, "d");
    submit(&job, 1, "b");
    assert_true(core_deadline(job.cores[1]) == now_ns + HOLD_CYCLES * MS);
    submit(&job, 1, "c");
    assert_true(core_deadline(job.cores[1]) == INT64_MIN);
    job_destroy(&job);
}

static void submit_priority(struct job *job, int rank, const char *name, int32_t priority)
{
    struct error err = ERROR_INIT;
    struct request request = {.key = request_key(KIND_ALLREDUCE, name),
                              .kind = KIND_ALLREDUCE,
                              .type = HVD_FLOAT32,
                              .op = HVD_SUM,
                              .prescale = 1,
                              .postscale = 1,
                              .priority = priority};
    assert_int_equal(core_submit(job->cores[rank], &request, job, job->now_ns, &err), HVD_OK);
}

/* Nothing is fused, so the order is visible. */
static void test_priorities(void **state)
{
    (void)state;
    struct job job;
    struct core_config config = usual;
    config.threshold = 0;
    config.cycle_ns = MS;
    job_create(&job, &config);
    for (int i = 1; i <= 3; i++) {
        for (int rank = 0; rank < RANKS; rank++) {
            submit_priority(&job, rank, "low", -1);
            submit_priority(&job, rank, "a", 0);
            submit_priority(&job, rank, "b", 0);
            submit_priority(&job, rank, "high", rank == 2 ? 5 : 0); /* the highest counts */
            submit_priority(&job, rank, "late", i == 3 ? 9 : -2);   /* changes in a cached tensor */
        }
        turn_all(&job, 2 * i * MS);
        for (int rank = 0; rank < RANKS; rank++)
            expect_log(&job, rank, i == 3 ? "tlate;thigh;ta;tb;tlow;" : "thigh;ta;tb;tlow;tlate;");
    }
    job_destroy(&job);
}

static void test_all_have_priorities(void **state)
{
    (void)state;
    struct job job;
    struct core_config config = usual;
    config.threshold = 0;
    job_create(&job, &config);
    for (int rank = 0; rank < RANKS; rank++) {
        submit_priority(&job, rank, "low", -1);
        submit_priority(&job, rank, "high", 5);
    }
    turn_all(&job, 2 * MS);
    expect_log(&job, 1, "thigh;tlow;");
    job_destroy(&job);
}

static void test_mismatch(void **state)
{
    (void)state;
    struct job job;
    struct error err = ERROR_INIT;
    job_create(&job, &usual);
    submit(&job, 0, "a");
    submit(&job, 2, "a");
    assert_int_equal(submit_kind(&job, 1, KIND_ALLREDUCE, "a", HVD_INT64, &err), HVD_OK);
    turn_all(&job, MS);
    for (int rank = 0; rank < RANKS; rank++)
        expect_log(&job, rank,
                   "-8:allreduce 'a': the types differ: float32 on ranks 2 and 7, and int64 on "
                   "rank 5;");
    step(&job, 2 * MS); /* the library stays usable */
    expect_log(&job, 1, "ta+tb;");
    job_destroy(&job);
}

/* A rank that agrees with nobody is not said to agree with the first one. */
static void test_three_that_differ(void **state)
{
    (void)state;
    struct job job;
    struct error err = ERROR_INIT;
    job_create(&job, &usual);
    submit(&job, 0, "a");
    assert_int_equal(submit_kind(&job, 1, KIND_ALLREDUCE, "a", HVD_INT64, &err), HVD_OK);
    assert_int_equal(submit_kind(&job, 2, KIND_ALLREDUCE, "a", HVD_FLOAT64, &err), HVD_OK);
    turn_all(&job, MS);
    for (int rank = 0; rank < RANKS; rank++)
        expect_log(&job, rank,
                   "-8:allreduce 'a': the types differ: float32 on rank 2, and int64 on rank 5; "
                   "rank 7 differs from both;");
    step(&job, 2 * MS);
    submit(&job, 0, "a"); /* nothing of it remains */
    submit(&job, 2, "a");
    assert_int_equal(submit_kind(&job, 1, KIND_ALLREDUCE, "a", HVD_INT64, &err), HVD_OK);
    turn_all(&job, 3 * MS);
    expect_log(&job, 1,
               "ta+tb;-8:allreduce 'a': the types differ: float32 on ranks 2 and 7, and int64 on "
               "rank 5;");
    job_destroy(&job);
}

static void test_what_only_one_rank_gets_wrong(void **state)
{
    (void)state;
    struct job job;
    struct error err = ERROR_INIT;
    job_create(&job, &usual);
    submit(&job, 0, "a");
    assert_int_equal(submit_kind(&job, 0, KIND_BROADCAST, "a", HVD_INT8, &err),
                     HVD_ERR_DUPLICATE_NAME);
    assert_non_null(strstr(err.text, "'a'"));
    assert_int_equal(submit_kind(&job, 0, KIND_JOIN, NULL, HVD_INT8, &err), HVD_OK);
    assert_int_equal(submit_kind(&job, 0, KIND_BARRIER, NULL, HVD_INT8, &err), HVD_ERR_ARGUMENT);
    job_destroy(&job);
}

static void test_join(void **state)
{
    (void)state;
    struct job job;
    struct error err = ERROR_INIT;
    job_create(&job, &usual);
    submit_kind(&job, 1, KIND_JOIN, NULL, HVD_INT8, &err);
    turn_all(&job, MS);
    for (int rank = 0; rank < RANKS; rank += 2) {
        submit(&job, rank, "a");
        submit_kind(&job, rank, KIND_BARRIER, NULL, HVD_INT8, &err);
        submit_kind(&job, rank, KIND_BROADCAST, "c", HVD_INT8, &err);
    }
    turn_all(&job, 2 * MS);
    expect_log(&job, 0, "-8:broadcast 'c': it needs all ranks, and rank 5 has joined;ta;b;");
    expect_log(&job, 1, "ta;b;");
    submit_kind(&job, 2, KIND_JOIN, NULL, HVD_INT8, &err);
    turn_all(&job, 3 * MS);
    submit_kind(&job, 0, KIND_JOIN, NULL, HVD_INT8, &err);
    turn_all(&job, 4 * MS);
    expect_log(&job, 1, "0:;");
    step(&job, 5 * MS);
    expect_log(&job, 1, "ta+tb;");
    for (int rank = 0; rank < RANKS; rank++) {
        submit_kind(&job, rank, KIND_JOIN, NULL, HVD_INT8, &err);
        turn_all(&job, (6 + rank) * MS);
    }
    expect_log(&job, 1, "0:;");
    assert_int_equal(job.done_rank, 7); /* the last one that joined */
    job_destroy(&job);
}

static void test_nothing_is_late_while_one_has_joined(void **state)
{
    (void)state;
    struct job job;
    struct error err = ERROR_INIT;
    struct core_config config = usual;
    config.warn_ns = 1000 * (int64_t)MS;
    job_create(&job, &config);
    submit_kind(&job, 1, KIND_JOIN, NULL, HVD_INT8, &err);
    turn_all(&job, MS);
    assert_true(core_deadline(job.cores[0]) == INT64_MAX);
    job_destroy(&job);
}

static void test_stalls(void **state)
{
    (void)state;
    struct job job;
    struct core_config config = usual;
    config.warn_ns = 1000 * (int64_t)MS;
    config.give_up_ns = 2500 * (int64_t)MS;
    job_create(&job, &config);
    submit(&job, 0, "a");
    submit(&job, 2, "a");
    turn_all(&job, MS);
    assert_true(core_deadline(job.cores[0]) == 1001 * (int64_t)MS);
    turn_all(&job, 1001 * (int64_t)MS);
    expect_log(&job, 0, "ranks 2 and 7 wait for rank 5 in allreduce 'a', for 1 s;");
    turn_all(&job, 1500 * (int64_t)MS);
    expect_log(&job, 0, "");
    turn_all(&job, 2001 * (int64_t)MS);
    expect_log(&job, 0, "ranks 2 and 7 wait for rank 5 in allreduce 'a', for 2 s;");
    turn_all(&job, 2501 * (int64_t)MS);
    expect_log(&job, 0, "-11:allreduce 'a' was not complete within 2 s;ended;close;");
    expect_log(&job, 1, "ended;");
    job_destroy(&job);
}

/* Two tensors are stalled, and the launcher hears of the end when both have gone on. */
static void test_what_was_stalled_goes_on(void **state)
{
    (void)state;
    struct job job;
    struct core_config config = usual;
    config.warn_ns = 1000 * (int64_t)MS;
    job_create(&job, &config);
    step(&job, MS);
    expect_log(&job, 0, "ta+tb;"); /* there was no warning */
    for (int rank = 0; rank < RANKS; rank += 2) {
        submit(&job, rank, "x");
        submit(&job, rank, "y");
    }
    turn_all(&job, 2 * MS);
    turn_all(&job, 1500 * (int64_t)MS);
    buf_clear(&job.log[0]);
    submit(&job, 1, "y");
    turn_all(&job, 1501 * (int64_t)MS);
    expect_log(&job, 0, "ty;");
    submit(&job, 0, "new");
    submit(&job, 1, "x");
    turn_all(&job, 1502 * (int64_t)MS);
    expect_log(&job, 0, "tx;goes on;");
    expect_log(&job, 1, "ta+tb;ty;tx;"); /* only the root watches */
    turn_all(&job, 1503 * (int64_t)MS);
    expect_log(&job, 0, "");
    job_destroy(&job);
}

/* Appends "0 and 2 -> 1: x;" for each group that waits, with set ranks. */
static void expect_waits(const struct job *job, int rank, const char *text)
{
    AUTO_BUF struct buf out = BUF_INIT(1000);
    struct stall stalls[CORE_WAITS_MAX];
    int count = core_waits(job->cores[rank], job->now_ns, stalls);
    for (int i = 0; i < count; i++) {
        for (size_t j = 0; j < stalls[i].waiting_count; j++)
            buf_printf(&out, "%d ", stalls[i].waiting[j]);
        buf_puts(&out, "wait for");
        for (size_t j = 0; j < stalls[i].missing_count; j++)
            buf_printf(&out, " %d", stalls[i].missing[j]);
        buf_printf(&out, " in %s for %d ms;", stalls[i].name, (int)(stalls[i].age_ns / MS));
        stall_destroy(&stalls[i]);
    }
    assert_string_equal(buf_text(&out), text);
}

/* Without any limit of time, the root knows the oldest tensor of each group. */
static void test_who_waits(void **state)
{
    (void)state;
    struct job job;
    job_create(&job, &usual);
    step(&job, MS);
    expect_waits(&job, 0, "");
    submit(&job, 0, "loss");
    submit(&job, 2, "loss");
    turn_all(&job, 2 * MS);
    submit(&job, 0, "younger");
    submit(&job, 2, "younger");
    submit(&job, 1, "los");
    turn_all(&job, 5 * MS);
    expect_waits(&job, 0, "2 7 wait for 5 in loss for 3 ms;5 wait for 2 7 in los for 0 ms;");
    expect_waits(&job, 1, "");
    submit(&job, 1, "loss");
    turn_all(&job, 6 * MS);
    expect_waits(&job, 0, "2 7 wait for 5 in younger for 1 ms;5 wait for 2 7 in los for 1 ms;");
    core_lost(job.cores[0], HVD_ERR_PEER_LOST, "gone");
    expect_waits(&job, 0, "");
    job_destroy(&job);
}

static void test_shut_down(void **state)
{
    (void)state;
    struct job job;
    struct error err = ERROR_INIT;
    job_create(&job, &usual);
    submit(&job, 0, "a");
    core_leave(job.cores[2], HVD_ERR_SHUT_DOWN);
    turn_all(&job, 0);
    expect_log(&job, 0, "-9:rank 7 has shut the library down;ended;close;");
    expect_log(&job, 1, "ended;");
    assert_int_equal(submit_kind(&job, 1, KIND_ALLREDUCE, "a", HVD_INT8, &err), HVD_ERR_SHUT_DOWN);
    assert_string_equal(err.text, "rank 7 has shut the library down");
    job_destroy(&job);
}

/* A rank that waits asks whether the others live. */
static void test_a_rank_that_does_not_answer(void **state)
{
    (void)state;
    struct job job;
    struct core_config config = usual;
    config.silence_ns = 3000 * (int64_t)MS;
    job_create(&job, &config);
    submit(&job, 0, "a");
    submit(&job, 1, "a");
    turn_all(&job, MS);
    int before = job.messages;
    turn_all(&job, 1000 * (int64_t)MS);
    assert_int_equal(job.messages - before, 4); /* a question and two answers */
    turn_all(&job, 1500 * (int64_t)MS);
    assert_int_equal(job.messages - before, 4);
    assert_true(core_deadline(job.cores[1]) == 4000 * (int64_t)MS); /* since the question */
    assert_true(core_deadline(job.cores[2]) == INT64_MAX);
    struct error err = ERROR_INIT;
    for (int64_t now = 2000; now < 9000; now += 500) /* only the root lives */
        if (core_turn(job.cores[0], now * MS, &err) != 0)
            break;
    assert_string_equal(err.text, "rank 5 does not answer");
    assert_int_equal(core_turn(job.cores[2], 9000 * (int64_t)MS, &err), 0); /* does not wait */
    assert_int_equal(core_turn(job.cores[1], 9000 * (int64_t)MS, &err), -1);
    assert_string_equal(err.text, "rank 2 does not answer");
    core_lost(job.cores[1], HVD_ERR_PEER_LOST, err.text);
    take(&job, 1);
    expect_log(&job, 1, "-10:rank 2 does not answer;ended;");
    job_destroy(&job);
}

/* New names push old ones out of the cache. */
static void test_more_names_than_the_cache_has(void **state)
{
    (void)state;
    struct job job;
    job_create(&job, &usual);
    for (int i = 0; i < 100; i++) {
        char *name AUTO_FREE = mem_printf("n%d", i % 50);
        for (int rank = 0; rank < RANKS; rank++) {
            submit(&job, rank, name);
            submit(&job, rank, "always");
        }
        turn_all(&job, (i + 1) * (int64_t)MS);
        for (int rank = 0; rank < RANKS; rank++)
            assert_non_null(strstr(buf_text(&job.log[rank]), name));
        for (int rank = 0; rank < RANKS; rank++)
            buf_clear(&job.log[rank]);
    }
    job_destroy(&job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_collected_for_the_cycle_time),
        cmocka_unit_test(test_a_thread_that_waits_does_not_wait_for_the_cycle),
        cmocka_unit_test(test_plan),
        cmocka_unit_test(test_plan_of_two_kinds_of_steps),
        cmocka_unit_test(test_priorities),
        cmocka_unit_test(test_all_have_priorities),
        cmocka_unit_test(test_mismatch),
        cmocka_unit_test(test_three_that_differ),
        cmocka_unit_test(test_what_only_one_rank_gets_wrong),
        cmocka_unit_test(test_join),
        cmocka_unit_test(test_nothing_is_late_while_one_has_joined),
        cmocka_unit_test(test_stalls),
        cmocka_unit_test(test_what_was_stalled_goes_on),
        cmocka_unit_test(test_who_waits),
        cmocka_unit_test(test_shut_down),
        cmocka_unit_test(test_a_rank_that_does_not_answer),
        cmocka_unit_test(test_more_names_than_the_cache_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
