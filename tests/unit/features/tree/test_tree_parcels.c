/* SPDX-License-Identifier: Apache-2.0 */
/* Parcels: each is taken once and in order, and the sender keeps what nobody has confirmed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "features/tree/parcels.h"

static void release(struct parcel *parcel)
{
    free(parcel);
}

static void add(struct parcels_out *out, size_t bytes)
{
    struct parcel *parcel = mem_alloc(sizeof(*parcel));
    *parcel = (struct parcel){.bytes = bytes};
    parcels_out_add(out, parcel);
}

/* By way of the agent at place 7, or on the own link. */
static void add_and_send(struct parcels_out *out, size_t bytes, int way, int64_t now)
{
    add(out, bytes);
    assert_true(parcels_out_may_go(out, way));
    parcels_out_goes(out, way, now);
}

static void test_kept_until_confirmed(void **state)
{
    (void)state;
    struct parcels_out out;
    parcels_out_init(&out, 8, 100, 3, release);
    for (int i = 0; i < 3; i++)
        add_and_send(&out, 10, 7, 5);
    add(&out, 10); /* it waits */
    assert_int_equal(out.first->serial, 1);
    assert_int_equal(out.bytes, 40);
    assert_int_equal(out.flying, 30);
    assert_int_equal(parcels_out_confirm(&out, 2), 0);
    assert_int_equal(out.first->serial, 3);
    assert_int_equal(parcels_out_confirm(&out, 1), 0); /* known */
    assert_int_equal(parcels_out_confirm(&out, 4), -1);
    assert_int_equal(parcels_out_confirm(&out, 3), 0);
    assert_ptr_equal(out.first, out.unsent);
    assert_int_equal(out.flying, 0);
    parcels_out_goes(&out, 7, 5);
    assert_int_equal(parcels_out_confirm(&out, 4), 0);
    assert_null(out.first);
    assert_null(out.unsent);
    add(&out, 10);
    assert_int_equal(out.unsent->serial, 5);
    parcels_out_clear(&out);
    assert_int_equal(out.bytes, 0);
}

/* Else one could overtake another. */
static void test_one_way_at_a_time(void **state)
{
    (void)state;
    struct parcels_out out;
    parcels_out_init(&out, 8, 100, 3, release);
    add_and_send(&out, 10, 7, 5);
    add(&out, 10);
    assert_false(parcels_out_may_go(&out, PARCEL_OWN_LINK));
    assert_false(parcels_out_may_go(&out, 6));
    assert_true(parcels_out_may_go(&out, 7));
    parcels_out_confirm(&out, 1);
    assert_true(parcels_out_may_go(&out, 6));
    assert_true(parcels_out_may_go(&out, PARCEL_OWN_LINK));
    parcels_out_goes(&out, PARCEL_OWN_LINK, 5);
    add(&out, 10);
    assert_false(parcels_out_may_go(&out, 7));
    parcels_out_clear(&out);
}

static void test_how_much_goes_by_others(void **state)
{
    (void)state;
    struct parcels_out out;
    parcels_out_init(&out, 8, 100, 3, release);
    add_and_send(&out, 2 * PARCEL_FLYING_MAX, 7, 5); /* the first one always */
    add(&out, 1);
    assert_false(parcels_out_may_go(&out, 7));
    parcels_out_confirm(&out, 1);
    parcels_out_goes(&out, 7, 5);
    add_and_send(&out, PARCEL_FLYING_MAX - 1, 7, 5);
    add(&out, 1);
    assert_false(parcels_out_may_go(&out, 7));
    parcels_out_clear(&out);
}

static void test_late(void **state)
{
    (void)state;
    struct parcels_out out;
    parcels_out_init(&out, 8, 30, 3, release);
    assert_false(parcels_out_is_late(&out, 1000));
    add_and_send(&out, 10, 7, 5);
    assert_false(parcels_out_is_late(&out, 12));
    assert_true(parcels_out_is_late(&out, 13));
    add_and_send(&out, PARCEL_BYTES_A_TICK, 7, 13); /* it has more time */
    parcels_out_confirm(&out, 1);
    assert_false(parcels_out_is_late(&out, 23));
    assert_true(parcels_out_is_late(&out, 24));
    parcels_out_confirm(&out, 2);
    assert_false(parcels_out_is_late(&out, 1000));
    add_and_send(&out, 100 * PARCEL_BYTES_A_TICK, 7, 100); /* but not more than the limit */
    assert_false(parcels_out_is_late(&out, 129));
    assert_true(parcels_out_is_late(&out, 130));
    parcels_out_confirm(&out, 3);
    add_and_send(&out, 10, PARCEL_OWN_LINK, 5);
    assert_false(parcels_out_is_late(&out, 1000));
    parcels_out_clear(&out);
}

static void test_waits_anew(void **state)
{
    (void)state;
    struct parcels_out out;
    parcels_out_init(&out, 8, 100, 3, release);
    parcels_out_wait(&out, 1);
    add_and_send(&out, 10, 7, 5);
    add_and_send(&out, PARCEL_BYTES_A_TICK, 7, 6);
    add(&out, 1);
    assert_true(parcels_out_is_late(&out, 20));
    parcels_out_wait(&out, 20);
    assert_false(parcels_out_is_late(&out, 27));
    assert_true(parcels_out_is_late(&out, 28));
    assert_int_equal(out.first->next->due, 31);
    parcels_out_clear(&out);
}

/* And so does all that waits: it is late at most once. */
static void test_returns_to_the_own_link(void **state)
{
    (void)state;
    struct parcels_out out;
    parcels_out_init(&out, 8, 100, 3, release);
    assert_int_equal(parcels_out_return(&out), 0);
    add_and_send(&out, 10, 7, 5);
    add_and_send(&out, 10, 7, 5);
    add(&out, 10);
    assert_int_equal(parcels_out_return(&out), 2);
    assert_ptr_equal(out.unsent, out.first);
    assert_int_equal(out.flying, 0);
    for (const struct parcel *parcel = out.first; parcel != NULL; parcel = parcel->next)
        assert_true(parcel->own_link);
    assert_false(parcels_out_is_late(&out, 1000));
    assert_int_equal(parcels_out_confirm(&out, 1), 0); /* the first copy has come */
    assert_int_equal(out.unsent->serial, 2);
    assert_int_equal(parcels_out_confirm(&out, 3), -1);
    parcels_out_goes(&out, PARCEL_OWN_LINK, 6);
    assert_int_equal(parcels_out_return(&out), 0); /* it is there */
    assert_int_equal(out.unsent->serial, 3);
    parcels_out_clear(&out);
}

static void test_turns(void **state)
{
    (void)state;
    uint64_t taken = 0;
    assert_int_equal(parcel_turn(&taken, 2), PARCEL_EARLY);
    assert_int_equal(parcel_turn(&taken, 1), PARCEL_NEXT);
    assert_int_equal(parcel_turn(&taken, 1), PARCEL_KNOWN);
    assert_int_equal(parcel_turn(&taken, 3), PARCEL_EARLY);
    assert_int_equal(parcel_turn(&taken, UINT64_MAX), PARCEL_EARLY);
    assert_int_equal(parcel_turn(&taken, 2), PARCEL_NEXT);
    assert_int_equal(taken, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kept_until_confirmed),
        cmocka_unit_test(test_one_way_at_a_time),
        cmocka_unit_test(test_how_much_goes_by_others),
        cmocka_unit_test(test_late),
        cmocka_unit_test(test_waits_anew),
        cmocka_unit_test(test_returns_to_the_own_link),
        cmocka_unit_test(test_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
