/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/exit/signal_rules.h"

#define OURS false
#define NODE true

static void test_a_schedulers_signal_counts_once(void **state)
{
    (void)state;
    struct signal_rounds rounds = {0};
    assert_true(signal_rounds_is_news(&rounds, SIGTERM, NODE, 1000));
    assert_false(signal_rounds_is_news(&rounds, SIGTERM, NODE, 1001)); /* keeper and agent */
    assert_false(signal_rounds_is_news(&rounds, SIGTERM, OURS, 1002));
    assert_false(signal_rounds_is_news(&rounds, SIGTERM, NODE, 1000 + SIGNAL_ROUND_MS - 1));
    assert_true(signal_rounds_is_news(&rounds, SIGTERM, NODE, 1000 + SIGNAL_ROUND_MS));
}

static void test_every_one_of_the_user_counts(void **state)
{
    (void)state;
    struct signal_rounds rounds = {0};
    assert_true(signal_rounds_is_news(&rounds, SIGINT, OURS, 1000));
    assert_true(signal_rounds_is_news(&rounds, SIGINT, OURS, 1000));
    assert_false(signal_rounds_is_news(&rounds, SIGINT, NODE, 1001));
    assert_true(signal_rounds_is_news(&rounds, SIGINT, OURS, 1002));
    /* the first of ours belongs to what the nodes have begun, the second does not */
    assert_true(signal_rounds_is_news(&rounds, SIGUSR1, NODE, 1003));
    assert_false(signal_rounds_is_news(&rounds, SIGUSR1, OURS, 1004));
    assert_true(signal_rounds_is_news(&rounds, SIGUSR1, OURS, 1005));
}

static void test_kinds_are_apart(void **state)
{
    (void)state;
    struct signal_rounds rounds = {0};
    assert_true(signal_rounds_is_news(&rounds, SIGTERM, NODE, 1000));
    assert_true(signal_rounds_is_news(&rounds, SIGUSR1, NODE, 1000));
    assert_true(signal_rounds_is_news(&rounds, SIGNAL_NUMBER_MAX, NODE, 1000));
    assert_false(signal_rounds_is_news(&rounds, SIGNAL_NUMBER_MAX + 1, NODE, 1000));
    assert_false(signal_rounds_is_news(&rounds, 0, OURS, 1000));
    assert_false(signal_rounds_is_news(&rounds, -5, NODE, 1000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_schedulers_signal_counts_once),
        cmocka_unit_test(test_every_one_of_the_user_counts),
        cmocka_unit_test(test_kinds_are_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
