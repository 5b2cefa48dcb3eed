/* SPDX-License-Identifier: Apache-2.0 */
/* A direct modex: one question at a time about a rank, whoever asks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "driver/mpi/mpi.h"

#define OWNER 7

static uint64_t add(struct mpi_asks *asks, uint32_t rank, int node)
{
    struct mpi_asker asker = {node, 3, (uint64_t)node * 10};
    return mpi_asks_add(asks, rank, OWNER, &asker);
}

/* Checks that exactly these nodes get the answer. Returns the next question. */
static uint64_t answer(struct mpi_asks *asks, uint64_t token, uint32_t rank, int first,
                       size_t count)
{
    struct mpi_asked asked = mpi_asks_answered(asks, OWNER, token);
    assert_int_equal(asked.count, count);
    assert_int_equal(asked.rank, rank);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(asked.askers[i].node, first + (int)i);
        assert_int_equal(asked.askers[i].token, (first + (int)i) * 10);
        assert_int_equal(asked.askers[i].epoch, 3);
    }
    free(asked.askers);
    return asked.next;
}

static void test_many_askers(void **state)
{
    (void)state;
    struct mpi_asks asks = {.last = 0};
    uint64_t first = add(&asks, 5, 0), other = add(&asks, 6, 1);
    assert_true(first != 0 && other != 0 && first != other);
    for (int node = 1; node < 6; node++)
        assert_int_equal(add(&asks, 5, node), 0);
    /* Only who had asked before the question gets the answer: it may be too old for the others. */
    uint64_t second = answer(&asks, first, 5, 0, 1);
    assert_true(second != 0 && second != first);
    assert_int_equal(add(&asks, 5, 6), 0);
    uint64_t third = answer(&asks, second, 5, 1, 5);
    assert_true(third != 0);
    assert_int_equal(answer(&asks, third, 5, 6, 1), 0);
    assert_int_equal(answer(&asks, other, 6, 1, 1), 0);
    assert_int_equal(asks.by_rank.count, 0);
    assert_int_equal(asks.waiting, 0);
    mpi_asks_clear(&asks);
}

/* Late, twice, or from another node. */
static void test_wrong_answers(void **state)
{
    (void)state;
    struct mpi_asks asks = {.last = 0};
    uint64_t old = add(&asks, 5, 0);
    mpi_asks_clear(&asks); /* an epoch ends */
    uint64_t now = add(&asks, 5, 0);
    assert_int_not_equal(old, now);
    assert_null(mpi_asks_answered(&asks, OWNER, old).askers);
    assert_null(mpi_asks_answered(&asks, OWNER + 1, now).askers);
    assert_null(mpi_asks_answered(&asks, OWNER, 0).askers);
    assert_null(mpi_asks_answered(&asks, OWNER, UINT64_MAX).askers);
    assert_int_equal(answer(&asks, now, 5, 0, 1), 0);
    assert_null(mpi_asks_answered(&asks, OWNER, now).askers);
    mpi_asks_clear(&asks);
}

static void count_refused(void *context, const struct mpi_asker *asker)
{
    unsigned *refused = context;
    *refused |= 1u << asker->node;
}

static void test_lost_nodes(void **state)
{
    (void)state;
    struct mpi_asks asks = {.last = 0};
    unsigned refused = 0;
    uint64_t token = add(&asks, 5, 0);
    for (int node = 1; node < 4; node++)
        add(&asks, 5, node);
    mpi_asks_node_lost(&asks, 0, count_refused, &refused);
    mpi_asks_node_lost(&asks, 2, count_refused, &refused);
    assert_int_equal(refused, 0);
    struct mpi_asked asked = mpi_asks_answered(&asks, OWNER, token);
    assert_int_equal(asked.count, 0); /* who had asked was lost; two more wait for the next one */
    assert_int_not_equal(asked.next, 0);
    free(asked.askers);
    mpi_asks_node_lost(&asks, OWNER, count_refused, &refused);
    assert_int_equal(refused, 1u << 1 | 1u << 3);
    assert_int_equal(asks.waiting, 0);
    asked = mpi_asks_answered(&asks, OWNER, asked.next);
    assert_int_equal(asked.count, 0);
    free(asked.askers);
    mpi_asks_clear(&asks);
}

/* An agent that never stops to ask does not fill the memory. */
static void test_endless_questions(void **state)
{
    (void)state;
    struct mpi_asks asks = {.last = 0};
    for (int i = 0; !mpi_asks_full(&asks); i++) {
        add(&asks, 5, i);
        assert_in_range(i, 0, 10000000);
    }
    mpi_asks_clear(&asks);
    assert_false(mpi_asks_full(&asks));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_askers),
        cmocka_unit_test(test_wrong_answers),
        cmocka_unit_test(test_lost_nodes),
        cmocka_unit_test(test_endless_questions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
