/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/rank_places.h"
#include "model/plan/plan.h"

static char *hosts[] = {(char *)"a", (char *)"b", (char *)"c"};

/* Three nodes, of which the message is for the second one. */
static Hvdrun__Prepare message(uint32_t *host_ranks, uint32_t *rank_nodes, size_t size)
{
    Hvdrun__Prepare prepare = HVDRUN__PREPARE__INIT;
    prepare.size = (uint32_t)size;
    prepare.hosts = hosts;
    prepare.n_hosts = prepare.n_host_ranks = 3;
    prepare.host_ranks = host_ranks;
    prepare.rank_nodes = rank_nodes;
    prepare.n_rank_nodes = rank_nodes == NULL ? 0 : size;
    prepare.node_index = 1;
    prepare.local_size = host_ranks[1];
    return prepare;
}

static void expect_ranks(const struct rank_places *places, int node, const int *ranks, int count)
{
    assert_int_equal(rank_places_count(places, node), count);
    for (int i = 0; i < count; i++) {
        assert_int_equal(rank_places_of(places, node)[i], ranks[i]);
        assert_int_equal(places->node_of[ranks[i]], node);
    }
}

static void test_blocks(void **state)
{
    (void)state;
    uint32_t host_ranks[] = {2, 3, 1};
    Hvdrun__Prepare prepare = message(host_ranks, NULL, 6);
    struct rank_places places;
    struct error err = ERROR_INIT;
    assert_int_equal(rank_places_read(&prepare, &places, &err), 0);
    assert_int_equal(places.here, 1);
    assert_int_equal(places.size, 6);
    assert_int_equal(places.node_count, 3);
    expect_ranks(&places, 0, (const int[]){0, 1}, 2);
    expect_ranks(&places, 1, (const int[]){2, 3, 4}, 3);
    expect_ranks(&places, 2, (const int[]){5}, 1);
    rank_places_destroy(&places);
}

static void test_listed(void **state)
{
    (void)state;
    uint32_t host_ranks[] = {3, 2, 1}, rank_nodes[] = {0, 1, 2, 0, 1, 0};
    Hvdrun__Prepare prepare = message(host_ranks, rank_nodes, 6);
    struct rank_places places;
    struct error err = ERROR_INIT;
    assert_int_equal(rank_places_read(&prepare, &places, &err), 0);
    expect_ranks(&places, 0, (const int[]){0, 3, 5}, 3);
    expect_ranks(&places, 1, (const int[]){1, 4}, 2);
    expect_ranks(&places, 2, (const int[]){2}, 1);
    rank_places_destroy(&places);
}

static void refuse(const Hvdrun__Prepare *prepare)
{
    struct rank_places places;
    struct error err = ERROR_INIT;
    assert_int_equal(rank_places_read(prepare, &places, &err), -1);
    assert_non_null(strstr(err.text, "the plan"));
    rank_places_destroy(&places);
}

static void test_contradictions(void **state)
{
    (void)state;
    uint32_t host_ranks[] = {3, 2, 1}, good[] = {0, 1, 2, 0, 1, 0};
    Hvdrun__Prepare prepare = message(host_ranks, good, 6);
    prepare.size = 7;
    refuse(&prepare);
    prepare = message(host_ranks, good, 6);
    prepare.n_rank_nodes = 5;
    refuse(&prepare);
    prepare = message(host_ranks, good, 6);
    prepare.node_index = 3;
    refuse(&prepare);
    prepare = message(host_ranks, good, 6);
    prepare.n_hosts = 2;
    refuse(&prepare);
    prepare = message(host_ranks, good, 6);
    prepare.local_size = 1;
    refuse(&prepare);
    uint32_t outside[] = {0, 1, 3, 0, 1, 0}, uneven[] = {0, 1, 2, 0, 1, 1};
    prepare = message(host_ranks, outside, 6);
    refuse(&prepare);
    prepare = message(host_ranks, uneven, 6);
    refuse(&prepare);
    uint32_t none[] = {0, 0, 0};
    prepare = message(none, NULL, 0);
    refuse(&prepare);
    uint32_t huge[] = {UINT32_MAX, 2, UINT32_MAX};
    prepare = message(huge, NULL, 0);
    refuse(&prepare);
}

/* Each of these is wrong in one way only. */
static void test_single_contradictions(void **state)
{
    (void)state;
    uint32_t host_ranks[] = {3, 2, 1, 4}, all_on_one[] = {6, 0, 0}, first[] = {0};
    Hvdrun__Prepare prepare = message(host_ranks, NULL, 6);
    prepare.size = 7;
    refuse(&prepare);
    prepare = message(host_ranks, NULL, 6);
    prepare.n_hosts = 2;
    refuse(&prepare);
    prepare = message(host_ranks, NULL, 6);
    prepare.node_index = 3;
    prepare.local_size = 4;
    refuse(&prepare);
    prepare = message(all_on_one, first, 6);
    prepare.n_rank_nodes = 1;
    refuse(&prepare);
}

static void test_the_first_rank_may_be_anywhere(void **state)
{
    (void)state;
    uint32_t host_ranks[] = {1, 2, 1}, rank_nodes[] = {2, 1, 0, 1};
    Hvdrun__Prepare prepare = message(host_ranks, rank_nodes, 4);
    struct rank_places places;
    assert_int_equal(rank_places_read(&prepare, &places, NULL), 0);
    expect_ranks(&places, 0, (const int[]){2}, 1);
    expect_ranks(&places, 1, (const int[]){1, 3}, 2);
    expect_ranks(&places, 2, (const int[]){0}, 1);
    rank_places_destroy(&places);
    assert_int_equal(places.size, 0);
    rank_places_destroy(&places);
}

static void test_the_largest_plan(void **state)
{
    (void)state;
    for (uint32_t over = 0; over < 2; over++) {
        uint32_t host_ranks[] = {PLAN_SIZE_MAX - 1, 1, over};
        Hvdrun__Prepare prepare = message(host_ranks, NULL, PLAN_SIZE_MAX + over);
        struct rank_places places;
        if (over != 0) {
            refuse(&prepare);
            continue;
        }
        assert_int_equal(rank_places_read(&prepare, &places, NULL), 0);
        assert_int_equal(places.node_of[PLAN_SIZE_MAX - 1], 1);
        rank_places_destroy(&places);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_listed),
        cmocka_unit_test(test_contradictions),
        cmocka_unit_test(test_single_contradictions),
        cmocka_unit_test(test_the_first_rank_may_be_anywhere),
        cmocka_unit_test(test_the_largest_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
