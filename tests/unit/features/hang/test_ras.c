/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "features/hang/ras.h"

#define RANKS 6

/* Each rank is in communicator 1 with all others, and in 2 or 3 with two others. */
struct world {
    struct ras_place places[RANKS][2];
    struct ras_rank ranks[RANKS];
    int64_t launched[RANKS];
    struct ras_finding finding;
};

static void begin(struct world *world)
{
    memset(world, 0, sizeof(*world));
    for (int i = 0; i < RANKS; i++) {
        world->places[i][0] = (struct ras_place){.comm = 1};
        world->places[i][1] = (struct ras_place){.comm = i < 3 ? 2 : 3};
        world->places[i][0].counts[RAS_ALLREDUCE] = 128802;
        world->places[i][1].counts[RAS_ALLGATHER] = 50;
        world->ranks[i] = (struct ras_rank){world->places[i], 2};
    }
}

static bool find(struct world *world)
{
    return ras_find(world->ranks, RANKS, &world->finding, world->launched);
}

static void test_nobody(void **state)
{
    (void)state;
    struct world world;
    begin(&world);
    assert_false(find(&world));
    for (int i = 0; i < RANKS; i++) {
        assert_int_equal(world.launched[i], -1);
        world.ranks[i].count = 0;
    }
    assert_false(find(&world));
    assert_false(ras_find(NULL, 0, &world.finding, world.launched));
}

static void test_one_is_behind(void **state)
{
    (void)state;
    struct world world;
    begin(&world);
    world.places[4][0].counts[RAS_ALLREDUCE] = 128801;
    world.ranks[5].count = 0; /* NCCL says nothing about it */
    assert_true(find(&world));
    assert_string_equal(world.finding.operation, "allreduces");
    assert_int_equal(world.finding.most, 128802);
    for (int i = 0; i < RANKS; i++)
        assert_int_equal(world.launched[i], i == 4 ? 128801 : i == 5 ? -1 : 128802);
}

/* Rank 4 does not come to its small communicator, so 3 and 5 do not come to the large one. */
static void test_those_that_wait_are_not_to_blame(void **state)
{
    (void)state;
    struct world world;
    begin(&world);
    for (int i = 3; i < RANKS; i++)
        world.places[i][0].counts[RAS_ALLREDUCE] = 128801;
    world.places[3][1].counts[RAS_ALLGATHER] = world.places[5][1].counts[RAS_ALLGATHER] = 51;
    assert_true(find(&world));
    assert_string_equal(world.finding.operation, "allreduces");
    assert_int_equal(world.launched[4], 128801);
    assert_int_equal(world.launched[3], -1);
    assert_int_equal(world.launched[5], -1);
    assert_int_equal(world.launched[0], 128802);
}

static void test_they_wait_for_each_other(void **state)
{
    (void)state;
    struct world world;
    begin(&world);
    for (int i = 0; i < 3; i++)
        world.places[i][0].counts[RAS_BROADCAST] = 1;
    for (int i = 3; i < RANKS; i++)
        world.places[i][0].counts[RAS_REDUCE] = 1;
    assert_false(find(&world));
}

static void test_mark(void **state)
{
    (void)state;
    struct world world;
    begin(&world);
    uint64_t before = ras_mark(&world.ranks[0]);
    assert_true(before == ras_mark(&world.ranks[1]));
    world.places[0][1].counts[RAS_ALLGATHER]++;
    assert_true(before != ras_mark(&world.ranks[0]));
    assert_int_equal(ras_mark(&(struct ras_rank){.count = 0}), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nobody),
        cmocka_unit_test(test_one_is_behind),
        cmocka_unit_test(test_those_that_wait_are_not_to_blame),
        cmocka_unit_test(test_they_wait_for_each_other),
        cmocka_unit_test(test_mark),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
