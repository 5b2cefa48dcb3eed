/* SPDX-License-Identifier: Apache-2.0 */
/* What agents answer about what ranks and hosts use, and that without a client nothing happens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "features/usage/sampled_fixture.h"

static void answered(void *context, const struct ask *ask)
{
    (void)ask;
    ++*(int *)context;
}

static void test_nobody_asks(void **state)
{
    struct sampled *sampled = *state;
    struct sampler *sampler = sampled->sampler;
    agents_connect(&sampled->agents, 0);
    agents_hear(&sampled->agents);
    assert_int_equal(sampled->agents.asked[0], 0);
    assert_false(ask_is_open(&sampled->f->job, &topic_usage));
    assert_int_equal(ask_age_ms(&sampled->f->job, &topic_usage), -1);
    assert_null(sampler_rank(sampler, 0));
    assert_null(sampler_host(sampler, 0));
}

static void test_an_answer(void **state)
{
    struct sampled *sampled = *state;
    struct sampler *sampler = sampled->sampler;
    int calls = 0;
    agents_connect(&sampled->agents, 0); /* the other host has no agent yet */
    assert_true(sampler_ask(sampler, answered, &calls));
    assert_true(ask_is_open(&sampled->f->job, &topic_usage));
    assert_int_equal(sampled_answer(sampled, 1000000), 0);
    assert_false(ask_is_open(&sampled->f->job, &topic_usage)); /* nobody else is asked */
    assert_int_equal(calls, 1);
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
    agents_connect(&sampled->agents, 0);
    assert_true(sampler_ask(sampler, NULL, NULL));
    assert_int_equal(sampled_answer(sampled, 1000000), 0);
    assert_int_equal(sampled_answer(sampled, 1500000), 0); /* nobody has asked */
    assert_int_equal(sampler_rank(sampler, 0)->last.cpu_us, 1000000);
    assert_int_equal(sampler_rank(sampler, 0)->before.when_ns, 0);
    sampled_wait(sampled);
    assert_true(sampler_ask(sampler, NULL, NULL));
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
    assert_true(sampler_ask(sampler, NULL, NULL));
    assert_int_equal(sampled_answer(sampled, 10), 0);
    assert_int_equal(sampler_rank(sampler, 0)->last.cpu_us, 10);
    assert_int_equal(sampler_rank(sampler, 0)->before.when_ns, 0);
    assert_true(rank_usage_cpus(sampler_rank(sampler, 1)) < 0); /* it has gone backwards */
}

/* A host that is silent does not hold up the others for ever. */
static void test_one_does_not_answer(void **state)
{
    struct sampled *sampled = *state;
    int calls = 0;
    agents_connect(&sampled->agents, 0);
    agents_connect(&sampled->agents, 1);
    assert_true(sampler_ask(sampled->sampler, answered, &calls));
    assert_int_equal(sampled_answer(sampled, 1000000), 0);
    assert_true(ask_is_open(&sampled->f->job, &topic_usage));
    assert_int_equal(calls, 0);
    int64_t limit = unit_limit_ms(RUN_LIMIT_MS);
    while (calls == 0 && !unit_is_over(limit))
        run_turns(sampled->f->job.loop, 1);
    assert_int_equal(calls, 1);
    assert_non_null(sampler_rank(sampled->sampler, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_nobody_asks, sampled_begin, sampled_end),
        cmocka_unit_test_setup_teardown(test_an_answer, sampled_begin, sampled_end),
        cmocka_unit_test_setup_teardown(test_two_answers, sampled_begin, sampled_end),
        cmocka_unit_test_setup_teardown(test_one_does_not_answer, sampled_begin, sampled_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
