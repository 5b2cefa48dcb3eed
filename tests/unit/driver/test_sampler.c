/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about what ranks and hosts use: which clients ask and wait, and that without a client
 * nothing happens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "driver/job_fixture.h"
#include "driver/usage/sampler.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_nobody_asks, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_round_for_all, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
