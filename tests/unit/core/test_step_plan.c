/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/cache.h"

static struct bits set_of(size_t a, size_t b)
{
    struct bits bits = {0};
    bits_set(&bits, a);
    bits_set(&bits, b);
    return bits;
}

static bool run(struct learner *learner, struct step_plan *plan, size_t a, size_t b)
{
    AUTO_BITS struct bits bits = set_of(a, b);
    return learner_run(learner, &bits, plan) > 0;
}

static void test_a_step_that_repeats_is_learned(void **state)
{
    (void)state;
    struct learner learner = {0};
    struct step_plan plan = {0};
    for (int step = 0; step < 3; step++) {
        assert_false(run(&learner, &plan, 0, 1));
        assert_false(run(&learner, &plan, 5, 6));
    }
    assert_true(run(&learner, &plan, 0, 1)); /* the fourth step begins */
    assert_int_equal(plan.count, 2);
    assert_true(bits_test(step_plan_group(&plan, 6), 5));
    assert_null(step_plan_group(&plan, 2));
    step_plan_destroy(&plan);
    learner_destroy(&learner);
}

/* The order and the groups may differ; the last step counts. */
static void test_other_groups_of_the_same_tensors(void **state)
{
    (void)state;
    struct learner learner = {0};
    struct step_plan plan = {0};
    run(&learner, &plan, 0, 1);
    run(&learner, &plan, 2, 3);
    run(&learner, &plan, 2, 3);
    run(&learner, &plan, 0, 1);
    run(&learner, &plan, 0, 2);
    assert_false(run(&learner, &plan, 1, 3));
    assert_true(run(&learner, &plan, 0, 1));
    assert_true(bits_test(step_plan_group(&plan, 0), 2));
    step_plan_destroy(&plan);
    learner_destroy(&learner);
}

static void test_a_step_that_differs_is_not_learned(void **state)
{
    (void)state;
    struct learner learner = {0};
    struct step_plan plan = {0};
    for (size_t step = 0; step < 20; step++) {
        assert_false(run(&learner, &plan, 0, 1));
        assert_false(run(&learner, &plan, 2 + step, 2 + step));
    }
    assert_int_equal(plan.count, 0);
    learner_destroy(&learner);
}

/* Steps of two kinds, such as of a training and of its evaluation. */
static void test_a_step_of_another_kind_is_learned_too(void **state)
{
    (void)state;
    struct learner learner = {0};
    struct step_plan plan = {0};
    for (int step = 0; step < 4; step++)
        run(&learner, &plan, 0, 1);
    assert_int_equal(plan.count, 1);
    for (int step = 0; step < 3; step++) {
        assert_false(run(&learner, &plan, 5, 6));
        assert_false(run(&learner, &plan, 0, 1));
        assert_false(run(&learner, &plan, 7, 8));
    }
    AUTO_BITS struct bits next = set_of(5, 6);
    assert_int_equal(learner_run(&learner, &next, &plan), 2);
    assert_int_equal(plan.count, 3);
    assert_true(bits_test(step_plan_group(&plan, 0), 1));
    assert_true(bits_test(step_plan_group(&plan, 8), 7));
    for (int step = 0; step < 9; step++) {
        assert_false(run(&learner, &plan, 5, 6));
        assert_false(run(&learner, &plan, 1, 6)); /* a part of two groups */
    }
    assert_int_equal(plan.count, 3);
    step_plan_destroy(&plan);
    learner_destroy(&learner);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_step_that_repeats_is_learned),
        cmocka_unit_test(test_other_groups_of_the_same_tensors),
        cmocka_unit_test(test_a_step_that_differs_is_not_learned),
        cmocka_unit_test(test_a_step_of_another_kind_is_learned_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
