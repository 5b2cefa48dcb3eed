/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/net/flow.h"

static void test_first_window(void **state)
{
    (void)state;
    struct credit_budget budget;
    struct credit credit;
    budget = (struct credit_budget){.total = CREDIT_BUDGET};
    credit_init(&credit, &budget, 1);
    assert_int_equal(credit.window, CREDIT_WINDOW_START);
    assert_int_equal(credit.granted, CREDIT_WINDOW_START);
    assert_int_equal(budget.handed_out, CREDIT_WINDOW_START);
    credit_release(&credit);
    assert_int_equal(budget.handed_out, 0);
    credit_init(&credit, &budget, 256); /* an equal share of the budget */
    assert_int_equal(credit.window, CREDIT_BUDGET / 256);
    credit_release(&credit);
    credit_init(&credit, &budget, 100000); /* but never less than a chunk */
    assert_int_equal(credit.window, CREDIT_WINDOW_MIN);
    credit_release(&credit);
    credit_init(&credit, &budget, 0);
    assert_int_equal(credit.window, CREDIT_WINDOW_START);
    credit_release(&credit);
    credit_release(&credit); /* twice is once */
    assert_int_equal(budget.handed_out, 0);
}

/* One chunk over the grant is allowed, one byte more is not. */
static void test_overrun(void **state)
{
    (void)state;
    struct credit_budget budget;
    struct credit credit;
    budget = (struct credit_budget){.total = CREDIT_BUDGET};
    credit_init(&credit, &budget, 1);
    assert_true(credit_received(&credit, CREDIT_WINDOW_START));
    assert_true(credit_received(&credit, CREDIT_WINDOW_MIN));
    assert_false(credit_received(&credit, 1));
}

static void test_a_used_window_grows(void **state)
{
    (void)state;
    struct credit_budget budget;
    struct credit credit;
    budget = (struct credit_budget){.total = CREDIT_BUDGET};
    credit_init(&credit, &budget, 1);
    assert_true(credit_received(&credit, CREDIT_WINDOW_START));
    assert_false(
        credit_consumed(&credit, CREDIT_WINDOW_START / 4, false)); /* too little for a frame */
    assert_true(credit_consumed(&credit, CREDIT_WINDOW_START / 4, false));
    assert_int_equal(credit.window, 2 * CREDIT_WINDOW_START);
    assert_int_equal(credit.granted, credit.consumed + credit.window);
    assert_int_equal(budget.handed_out, credit.window);
}

/* What a slow reader kept waiting earns credit, but not more of it than before. */
static void test_a_slow_reader_grows_nothing(void **state)
{
    (void)state;
    struct credit_budget budget;
    struct credit credit;
    budget = (struct credit_budget){.total = CREDIT_BUDGET};
    credit_init(&credit, &budget, 1);
    for (int i = 0; i < 100; i++) {
        uint64_t all = credit.granted - credit.received;
        assert_true(credit_received(&credit, all));
        assert_true(credit_consumed(&credit, all, true));
        assert_int_equal(credit.window, CREDIT_WINDOW_START);
        assert_int_equal(credit.granted, credit.received + CREDIT_WINDOW_START);
    }
    assert_int_equal(budget.handed_out, CREDIT_WINDOW_START);
    uint64_t all = credit.granted - credit.received; /* the reader has become fast */
    assert_true(credit_received(&credit, all));
    assert_true(credit_consumed(&credit, all, false));
    assert_int_equal(credit.window, 2 * CREDIT_WINDOW_START);
}

/* A node whose bytes are consumed as they come never uses its window up, so it stays small. */
static void test_a_trickle_does_not_grow(void **state)
{
    (void)state;
    struct credit_budget budget;
    struct credit credit;
    budget = (struct credit_budget){.total = CREDIT_BUDGET};
    credit_init(&credit, &budget, 1);
    int grants = 0;
    for (int i = 0; i < 100000; i++) {
        assert_true(credit_received(&credit, 100));
        grants += credit_consumed(&credit, 100, false);
    }
    assert_int_equal(credit.window, CREDIT_WINDOW_START);
    assert_true(grants >= 18 && grants <= 20); /* ten megabytes in halves of the window */
}

/* The last chunk before a stop may end far beyond the grant. When all of it has been consumed there
 * must be a new grant, or the node would be silent for ever. */
static void test_no_stall_after_an_overrun(void **state)
{
    (void)state;
    struct credit_budget budget;
    struct credit credit;
    budget = (struct credit_budget){.total = CREDIT_BUDGET};
    credit_init(&credit, &budget, 100000);
    assert_int_equal(credit.granted, CREDIT_WINDOW_MIN);
    assert_true(credit_received(&credit, 100));
    assert_false(credit_consumed(&credit, 100, false));
    assert_true(credit_received(&credit, CREDIT_WINDOW_MIN));
    assert_true(credit_consumed(&credit, CREDIT_WINDOW_MIN, false));
    assert_true(credit.granted > credit.received);
    /* the same when a slow reader takes everything at once */
    struct credit large;
    credit_init(&large, &budget, 1);
    assert_true(credit_received(&large, large.granted + CREDIT_WINDOW_MIN));
    assert_true(credit_consumed(&large, large.received, false));
    assert_true(large.granted > large.received);
}

static unsigned next(unsigned *seed)
{
    *seed = *seed * 1103515245u + 12345u;
    return *seed >> 8;
}

/* Nodes that send and are consumed at random: the windows stay within the budget, grants only grow,
 * what waits is bounded, and nobody who has been read empty is left without credit. */
static void test_many_nodes(void **state)
{
    (void)state;
    enum { NODES = 40 };
    struct credit_budget budget;
    struct credit nodes[NODES];
    unsigned seed = 11;
    budget = (struct credit_budget){.total = 16 << 20};
    for (int i = 0; i < NODES; i++)
        credit_init(&nodes[i], &budget, NODES);
    for (int round = 0; round < 200000; round++) {
        struct credit *node = &nodes[next(&seed) % NODES];
        uint64_t chunk = next(&seed) % CREDIT_WINDOW_MIN + 1, before = node->granted;
        if (node->received < node->granted)
            assert_true(credit_received(node, chunk));
        uint64_t waits = node->received - node->consumed;
        if (next(&seed) % 3 == 0 && waits > 0) {
            uint64_t taken = next(&seed) % 2 == 0 ? waits : next(&seed) % waits + 1;
            bool raised = credit_consumed(node, taken, next(&seed) % 2 == 0);
            assert_int_equal(raised, node->granted != before);
        }
        assert_true(node->granted >= before);
        assert_true(node->received - node->consumed <= node->window + CREDIT_WINDOW_MIN);
        if (node->received == node->consumed)
            assert_true(node->granted > node->received);
        uint64_t sum = 0;
        for (int i = 0; i < NODES; i++)
            sum += nodes[i].window;
        assert_int_equal(sum, budget.handed_out);
        assert_true(sum <= budget.total);
    }
    for (int i = 0; i < NODES; i++)
        credit_release(&nodes[i]);
    assert_int_equal(budget.handed_out, 0);
}

/* What a node gives back, another one can grow into. */
static void test_released_budget_is_used_again(void **state)
{
    (void)state;
    struct credit_budget budget;
    struct credit first, second;
    budget = (struct credit_budget){.total = 2 * CREDIT_WINDOW_START};
    credit_init(&first, &budget, 2);
    credit_init(&second, &budget, 2);
    credit_received(&first, CREDIT_WINDOW_START);
    assert_true(credit_consumed(&first, CREDIT_WINDOW_START, false));
    assert_int_equal(first.window, CREDIT_WINDOW_START); /* nothing left to grow into */
    credit_release(&second);
    credit_received(&first, CREDIT_WINDOW_START);
    assert_true(credit_consumed(&first, CREDIT_WINDOW_START, false));
    assert_int_equal(first.window, 2 * CREDIT_WINDOW_START);
    assert_false(credit_consumed(&second, 10, false)); /* late news of a node that has gone */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_window),
        cmocka_unit_test(test_overrun),
        cmocka_unit_test(test_a_used_window_grows),
        cmocka_unit_test(test_a_slow_reader_grows_nothing),
        cmocka_unit_test(test_a_trickle_does_not_grow),
        cmocka_unit_test(test_no_stall_after_an_overrun),
        cmocka_unit_test(test_many_nodes),
        cmocka_unit_test(test_released_budget_is_used_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
