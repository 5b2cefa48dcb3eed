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
#include "core/tuner.h"

#define MS ((int64_t)1000000)
#define MIB ((size_t)1 << 20)
static const struct tune_point defaults = {128 * MIB, MS};

/* A job of two tensors of 1 MB in each step, which is fastest at one point. */
struct job {
    struct tuner tuner;
    struct tune_point now;
    int64_t now_ns;
};

static void job_create(struct job *job, const struct tuner_setup *setup)
{
    *job = (struct job){.now = defaults};
    tuner_init(&job->tuner, setup, &defaults);
}

static int64_t duration(const struct tune_point *point, int slow_step)
{
    int64_t ns = MS;
    for (size_t t = point->threshold; t > 16 * MIB; t /= 2)
        ns += MS;
    for (size_t t = point->threshold; t < 16 * MIB; t *= 2)
        ns += MS;
    for (int64_t c = point->cycle_ns; c > MS / 2; c /= 2)
        ns += MS;
    for (int64_t c = point->cycle_ns; c < MS / 2; c *= 2)
        ns += MS;
    return slow_step ? 50 * ns : ns;
}

/* True: a round is over. */
static bool step(struct job *job, bool slow, struct tuning *tuning)
{
    job->now_ns += duration(&job->now, slow);
    tuner_count(&job->tuner, "ta", 1000000);
    tuner_count(&job->tuner, "tb", 1000000);
    if (!tuner_turn(&job->tuner, job->now_ns, tuning))
        return false;
    assert_true(tuning->tried.threshold == job->now.threshold);
    assert_true(tuning->tried.cycle_ns == job->now.cycle_ns);
    job->now = tuning->next;
    return true;
}

static void test_it_settles_at_the_best_point(void **state)
{
    (void)state;
    struct job job;
    struct tuning tuning = {0};
    job_create(&job, &(struct tuner_setup){.on = true, .warm_up = 1, .steps = 2, .points = 100});
    int rounds = 0;
    for (int i = 0; i < 2000 && !tuning.settled; i++)
        /* one sample of each round is much slower: the median does not care */
        rounds += step(&job, i % 10 == 3, &tuning);
    assert_true(tuning.settled);
    assert_in_range(rounds, 5, 40);
    assert_true(tuning.next.threshold == 16 * MIB);
    assert_true(tuning.next.cycle_ns == MS / 2);
    assert_true(tuning.best_score > 1999 && tuning.best_score < 2001); /* bytes in 1 us */
    for (int i = 0; i < 100; i++)
        assert_false(step(&job, false, &tuning));
    tuner_destroy(&job.tuner);
}

static void test_warm_up_and_samples(void **state)
{
    (void)state;
    struct job job;
    struct tuning tuning = {0};
    job_create(&job, &(struct tuner_setup){.on = true, .warm_up = 3, .steps = 10, .points = 20});
    int steps = 0;
    while (!step(&job, false, &tuning))
        steps++;
    /* the first step is only the beginning of the first sample */
    assert_int_equal(steps, 4 * TUNER_SAMPLES * 10);
    assert_true(tuning.tried.threshold == defaults.threshold);
    assert_true(tuning.tried.cycle_ns == defaults.cycle_ns);
    assert_true(tuning.next.threshold == 8 * MIB);
    tuner_destroy(&job.tuner);
}

static void test_what_the_user_has_set_stays(void **state)
{
    (void)state;
    struct tuner tuner;
    struct tuning tuning = {0};
    const struct tune_point odd = {12345, 7 * MS / 3};
    int64_t now_ns = 0;
    tuner_init(
        &tuner,
        &(struct tuner_setup){
            .on = true, .threshold_fixed = true, .cycle_fixed = true, .steps = 1, .points = 20},
        &odd);
    for (int i = 0; i < 1000 && !tuning.settled; i++) {
        tuner_turn(&tuner, now_ns += MS, &tuning);
        tuner_count(&tuner, "ta", 100);
    }
    assert_true(tuning.settled);
    assert_true(tuning.next.threshold == odd.threshold && tuning.next.cycle_ns == odd.cycle_ns);
    tuner_destroy(&tuner);
}

/* Names that never repeat are not steps, and do not fill the memory. */
static void test_names_that_do_not_repeat(void **state)
{
    (void)state;
    struct job job;
    struct tuning tuning = {0};
    job_create(&job, &(struct tuner_setup){.on = true, .steps = 2, .points = 20});
    for (int i = 0; i < 200000; i++) {
        char *key AUTO_FREE = mem_printf("t%d", i);
        tuner_count(&job.tuner, key, 100);
        assert_false(tuner_turn(&job.tuner, i + 1, &tuning));
    }
    assert_in_range(job.tuner.counts.count, 1, 1 << 16);
    tuner_destroy(&job.tuner);
}

static void test_off(void **state)
{
    (void)state;
    struct job job;
    struct tuning tuning = {0};
    job_create(&job, &(struct tuner_setup){.steps = 1, .points = 20});
    for (int i = 0; i < 1000; i++)
        assert_false(step(&job, false, &tuning));
    assert_int_equal(job.tuner.counts.count, 0);
    tuner_destroy(&job.tuner);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_settles_at_the_best_point),
        cmocka_unit_test(test_warm_up_and_samples),
        cmocka_unit_test(test_what_the_user_has_set_stays),
        cmocka_unit_test(test_names_that_do_not_repeat),
        cmocka_unit_test(test_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
