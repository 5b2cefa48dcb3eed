/* SPDX-License-Identifier: Apache-2.0 */
/* Parcels: each comes once and in order, and the sender keeps what nobody has confirmed. */
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

static struct parcel *parcel_of(uint64_t serial, size_t bytes)
{
    struct parcel *parcel = mem_alloc(sizeof(*parcel));
    parcel->serial = serial;
    parcel->bytes = bytes;
    return parcel;
}

static void test_kept_until_confirmed(void **state)
{
    (void)state;
    struct parcels_out out;
    parcels_out_init(&out, 8, release);
    assert_false(parcels_out_is_late(&out, 1000));
    for (int i = 0; i < 3; i++)
        parcels_out_add(&out, parcel_of(0, 10), 5);
    assert_int_equal(out.first->serial, 1);
    assert_int_equal(out.sent, 3);
    assert_int_equal(out.bytes, 30);
    assert_int_equal(parcels_out_confirm(&out, 2), 0);
    assert_int_equal(out.first->serial, 3);
    assert_int_equal(parcels_out_confirm(&out, 1), 0); /* known */
    assert_int_equal(parcels_out_confirm(&out, 4), -1);
    assert_int_equal(parcels_out_confirm(&out, 3), 0);
    assert_null(out.first);
    parcels_out_add(&out, parcel_of(0, 10), 5);
    assert_int_equal(out.first->serial, 4);
    parcels_out_clear(&out);
}

static void test_late(void **state)
{
    (void)state;
    struct parcels_out out;
    parcels_out_init(&out, 8, release);
    parcels_out_add(&out, parcel_of(0, 10), 5);
    assert_false(parcels_out_is_late(&out, 12));
    assert_true(parcels_out_is_late(&out, 13));
    parcels_out_went_direct(&out, 1);
    parcels_out_add(&out, parcel_of(0, 3 * PARCEL_BYTES_A_TICK), 13); /* it has more time */
    assert_int_equal(parcels_out_again(&out, 13)->serial, 2);
    assert_false(parcels_out_is_late(&out, 24)); /* the first is on its own link */
    parcels_out_confirm(&out, 1);
    assert_false(parcels_out_is_late(&out, 23));
    assert_true(parcels_out_is_late(&out, 24));
    parcels_out_went_direct(&out, 2);
    parcels_out_went_direct(&out, 1);
    assert_null(parcels_out_again(&out, 24));
    assert_false(parcels_out_is_late(&out, 24));
    parcels_out_clear(&out);
}

static void test_order(void **state)
{
    (void)state;
    struct parcels_in in;
    parcels_in_init(&in, release);
    assert_false(parcels_in_owes(&in));
    assert_int_equal(parcels_in_see(&in, 3), PARCEL_EARLY);
    parcels_in_hold(&in, parcel_of(3, 1));
    parcels_in_hold(&in, parcel_of(2, 1));
    parcels_in_hold(&in, parcel_of(5, 1));
    parcels_in_hold(&in, parcel_of(3, 1)); /* again */
    assert_int_equal(in.held_bytes, 3);
    assert_null(parcels_in_next(&in));
    assert_int_equal(parcels_in_see(&in, 1), PARCEL_NEXT);
    for (uint64_t serial = 2; serial <= 3; serial++) {
        struct parcel *next = parcels_in_next(&in);
        assert_int_equal(next->serial, serial);
        free(next);
    }
    assert_null(parcels_in_next(&in));
    assert_int_equal(parcels_in_see(&in, 4), PARCEL_NEXT);
    assert_int_equal(parcels_in_see(&in, 5), PARCEL_NEXT); /* by another way */
    assert_null(parcels_in_next(&in));
    assert_int_equal(in.held_bytes, 0);
    assert_int_equal(parcels_in_see(&in, 2), PARCEL_OLD);
    parcels_in_hold(&in, parcel_of(9, 1));
    parcels_in_clear(&in);
}

static void test_what_the_sender_is_told(void **state)
{
    (void)state;
    struct parcels_in in;
    parcels_in_init(&in, release);
    parcels_in_see(&in, 1);
    assert_true(parcels_in_owes(&in));
    assert_int_equal(parcels_in_tell(&in), 1);
    assert_false(parcels_in_owes(&in));
    parcels_in_see(&in, 1); /* it was told that, on a link that loses nothing */
    parcels_in_see(&in, 3);
    assert_false(parcels_in_owes(&in));
    parcels_in_clear(&in);
}

static void test_limit_of_what_is_held(void **state)
{
    (void)state;
    struct parcels_in in;
    parcels_in_init(&in, release);
    parcels_in_hold(&in, parcel_of(3, PARCEL_HELD_MAX));
    parcels_in_hold(&in, parcel_of(2, 1)); /* it will come again */
    assert_int_equal(in.held_bytes, PARCEL_HELD_MAX);
    assert_int_equal(in.held->serial, 3);
    parcels_in_clear(&in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kept_until_confirmed),
        cmocka_unit_test(test_late),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_what_the_sender_is_told),
        cmocka_unit_test(test_limit_of_what_is_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
