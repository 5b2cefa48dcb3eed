/* SPDX-License-Identifier: Apache-2.0 */
/* What agents report of NCCL, kept by seat. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "features/hang/hang_facts_driver.h"

#define MANY 2000

/* A pulse of a worker in two communicators. */
struct pulse {
    uint64_t counts[2][RAS_OPERATIONS];
    Hvdrun__RasPlace places[2], *list[2];
    Hvdrun__RankPulse message;
};

static void begin(struct pulse *pulse)
{
    *pulse = (struct pulse){.message = HVDRUN__RANK_PULSE__INIT};
    for (int i = 0; i < 2; i++) {
        pulse->places[i] = (Hvdrun__RasPlace)HVDRUN__RAS_PLACE__INIT;
        pulse->places[i].comm = 10 + (uint64_t)i;
        pulse->places[i].counts = pulse->counts[i];
        pulse->places[i].n_counts = RAS_OPERATIONS;
        pulse->list[i] = &pulse->places[i];
    }
    pulse->message.ras = pulse->list;
    pulse->message.n_ras = 2;
}

static void test_moves(void **state)
{
    (void)state;
    struct ras_facts *facts = ras_facts_create();
    struct pulse pulse;
    begin(&pulse);
    assert_int_equal(ras_facts_take(facts, 3, &pulse.message), 0); /* the first answer */
    assert_int_equal(ras_facts_take(facts, 3, &pulse.message), 0);
    pulse.counts[1][RAS_ALLREDUCE]++;
    assert_int_equal(ras_facts_take(facts, 3, &pulse.message), 1);
    assert_int_equal(ras_facts_take(facts, 3, &pulse.message), 1);
    assert_int_equal(ras_facts_take(facts, 0, &pulse.message), 0); /* another worker */
    pulse.counts[0][RAS_BROADCAST] += 5;
    assert_int_equal(ras_facts_take(facts, 3, &pulse.message), 2);
    pulse.message.n_ras = 0; /* no answer: nothing has moved */
    assert_int_equal(ras_facts_take(facts, 3, &pulse.message), 2);
    assert_int_equal(ras_facts_take(facts, 0, &pulse.message), 0);
    assert_int_equal(ras_facts_take(facts, 99, &pulse.message), 0);
    ras_facts_destroy(facts);
    ras_facts_destroy(NULL);
}

static void test_places(void **state)
{
    (void)state;
    struct ras_facts *facts = ras_facts_create();
    struct pulse pulse;
    begin(&pulse);
    pulse.counts[0][RAS_REDUCE] = 7;
    pulse.counts[1][RAS_ALLGATHER] = UINT64_MAX; /* what nobody sends */
    ras_facts_take(facts, 1, &pulse.message);
    struct ras_rank rank = ras_facts_of(facts, 1);
    assert_int_equal(rank.count, 2);
    assert_int_equal(rank.places[0].comm, 10);
    assert_int_equal(rank.places[0].counts[RAS_REDUCE], 7);
    assert_int_equal(rank.places[1].comm, 11);
    assert_int_equal(rank.places[1].counts[RAS_ALLGATHER], 0);
    assert_int_equal(ras_facts_of(facts, 0).count, 0);
    assert_int_equal(ras_facts_of(facts, 2).count, 0);
    pulse.places[0].n_counts--; /* of another version */
    assert_int_equal(ras_facts_take(facts, 1, &pulse.message), 1);
    rank = ras_facts_of(facts, 1);
    assert_int_equal(rank.count, 1);
    assert_int_equal(rank.places[0].comm, 11);
    ras_facts_forget(facts);
    assert_int_equal(ras_facts_of(facts, 1).count, 0);
    assert_null(ras_facts_of(facts, 1).places);
    pulse.counts[1][RAS_REDUCE]++; /* nobody knows when */
    assert_int_equal(ras_facts_take(facts, 1, &pulse.message), 1);
    ras_facts_destroy(facts);
}

static void test_a_limit(void **state)
{
    (void)state;
    struct ras_facts *facts = ras_facts_create();
    struct pulse pulse;
    begin(&pulse);
    Hvdrun__RasPlace **list AUTO_FREE = mem_array(MANY, sizeof(*list));
    for (int i = 0; i < MANY; i++)
        list[i] = &pulse.places[i % 2];
    pulse.message.ras = list;
    pulse.message.n_ras = MANY;
    ras_facts_take(facts, 0, &pulse.message);
    assert_int_equal(ras_facts_of(facts, 0).count, 1024);
    ras_facts_destroy(facts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moves),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
