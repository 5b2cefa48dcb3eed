/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about what ranks and hosts use: which clients ask and wait, and that without a client
 * nothing happens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "driver/sampled_fixture.h"
#include "unit.h"

struct asker {
    struct sampler_waiter waiter;
    int answered;
};

static void answered(void *context)
{
    struct asker *asker = context;
    asker->answered++;
}

static void test_nobody_asks(void **state)
{
    struct fixture *f = *state;
    struct sampler *sampler = sampler_create(&f->job);
    run_turns(f->job.loop, 20);
    assert_false(sampler_is_asking(sampler));
    assert_int_equal(sampler_age_ms(sampler), -1);
    assert_null(sampler_rank(sampler, 0));
    assert_null(sampler_host(sampler, 0));
    sampler_destroy(sampler);
    sampler_destroy(NULL);
}

/* One round for all, and none while the values are fresh. No agent is there to answer. */
static void test_one_round_for_all(void **state)
{
    struct fixture *f = *state;
    struct sampler *sampler = sampler_create(&f->job);
    struct asker one = {.waiter = {answered, &one, NULL, false}},
                 other = {.waiter = {answered, &other, NULL, false}},
                 gone = {.waiter = {answered, &gone, NULL, false}};
    assert_true(sampler_ask(sampler, &one.waiter));
    assert_true(sampler_ask(sampler, &one.waiter)); /* waits only once */
    assert_true(sampler_ask(sampler, &gone.waiter));
    assert_true(sampler_ask(sampler, &other.waiter));
    assert_true(sampler_is_asking(sampler));
    sampler_forget(sampler, &gone.waiter);
    for (int i = 0; i < RUN_LIMIT_MS && sampler_is_asking(sampler); i++)
        run_turns(f->job.loop, 1);
    assert_int_equal(one.answered, 1);
    assert_int_equal(other.answered, 1);
    assert_int_equal(gone.answered, 0);
    assert_true(sampler_age_ms(sampler) >= 0);
    if (sampler_age_ms(sampler) < SAMPLER_FRESH_MS / 2)
        assert_false(sampler_ask(sampler, &one.waiter));
    sampler_forget(sampler, &one.waiter);
    sampler_destroy(sampler);
}

static void test_an_answer(void **state)
{
    struct sampled *sampled = *state;
    struct sampler *sampler = sampled->sampler;
    struct asker one = {.waiter = {answered, &one, NULL, false}};
    sampled_connect(sampled, 0); /* the other host has no agent yet */
    assert_true(sampler_ask(sampler, &one.waiter));
    run_turns(sampled->f->job.loop, 3);
    assert_true(sampler_is_asking(sampler));
    assert_int_equal(sampled_answer(sampled, 1000000), 0);
    assert_false(sampler_is_asking(sampler)); /* nobody else is asked */
    assert_int_equal(one.answered, 1);
    const struct host_sample *host = sampler_host(sampler, 0);
    assert_non_null(host);
    assert_true(host->has_load && host->load == 1.5);
    assert_int_equal(host->memory_bytes, (uint64_t)8 << 30);
    assert_true(host->memory.known && host->memory.some_percent == 12.5);
    assert_true(host->memory.some_s == 3 && host->memory.full_s == 1);
    assert_false(host->cpu.known);
    assert_null(sampler_host(sampler, 1));
    const struct rank_usage *usage = sampler_rank(sampler, 1);
    assert_non_null(usage);
    assert_int_equal(usage->last.cpu_us, 1000001);
    assert_int_equal(usage->last.written_bytes, 200);
    assert_true(rank_usage_cpus(usage) < 0); /* that takes two */
    assert_non_null(sampler_rank(sampler, 0));
    assert_null(sampler_rank(sampler, 2));
    assert_null(sampler_rank(sampler, 3));
}

static void test_two_answers(void **state)
{
    struct sampled *sampled = *state;
    struct sampler *sampler = sampled->sampler;
    sampled_connect(sampled, 0);
    assert_true(sampler_ask(sampler, NULL));
    assert_int_equal(sampled_answer(sampled, 1000000), 0);
    assert_int_equal(sampled_answer(sampled, 1500000), 0); /* nobody has asked */
    assert_int_equal(sampler_rank(sampler, 0)->last.cpu_us, 1000000);
    assert_int_equal(sampler_rank(sampler, 0)->before.when_ns, 0);
    sampled_wait(sampled);
    assert_true(sampler_ask(sampler, NULL));
    assert_int_equal(sampled_answer(sampled, 2000000), 0);
    const struct rank_usage *usage = sampler_rank(sampler, 0);
    assert_int_equal(usage->last.cpu_us, 2000000);
    assert_int_equal(usage->before.cpu_us, 1000000);
    double elapsed_us = (double)(usage->last.when_ns - usage->before.when_ns) / 1000,
           cpus = rank_usage_cpus(usage);
    assert_true(elapsed_us > 0);
    assert_true(cpus > 0.99e6 / elapsed_us && cpus < 1.01e6 / elapsed_us);
    sampled->f->job.ranks.records[0].pid = 999; /* another worker has the seat */
    assert_null(sampler_rank(sampler, 0));
    sampled_wait(sampled);
    assert_true(sampler_ask(sampler, NULL));
    assert_int_equal(sampled_answer(sampled, 10), 0);
    assert_int_equal(sampler_rank(sampler, 0)->last.cpu_us, 10);
    assert_int_equal(sampler_rank(sampler, 0)->before.when_ns, 0);
    assert_true(rank_usage_cpus(sampler_rank(sampler, 1)) < 0); /* it has gone backwards */
}

/* A host that is silent does not hold up the others for ever. */
static void test_one_does_not_answer(void **state)
{
    struct sampled *sampled = *state;
    struct asker one = {.waiter = {answered, &one, NULL, false}};
    sampled_connect(sampled, 0);
    sampled_connect(sampled, 1);
    assert_true(sampler_ask(sampled->sampler, &one.waiter));
    assert_int_equal(sampled_answer(sampled, 1000000), 0);
    assert_true(sampler_is_asking(sampled->sampler));
    assert_int_equal(one.answered, 0);
    int64_t limit = unit_limit_ms(RUN_LIMIT_MS);
    while (one.answered == 0 && !unit_is_over(limit))
        run_turns(sampled->f->job.loop, 1);
    assert_int_equal(one.answered, 1);
    assert_non_null(sampler_rank(sampled->sampler, 0));
    struct agent_frame frame = {.body = (const uint8_t *)"\377", .length = 1};
    assert_int_equal(sampler_take(&sampled->f->job, sampled->f->job.nodes[1], &frame), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_nobody_asks, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_round_for_all, setup, teardown),
        cmocka_unit_test_setup_teardown(test_an_answer, sampled_begin, sampled_end),
        cmocka_unit_test_setup_teardown(test_two_answers, sampled_begin, sampled_end),
        cmocka_unit_test_setup_teardown(test_one_does_not_answer, sampled_begin, sampled_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
