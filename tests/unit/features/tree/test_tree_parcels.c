/* SPDX-License-Identifier: Apache-2.0 */
/* Parcels: each is taken once, and the sender keeps what nobody has confirmed. */
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
    parcels_out_init(&out, 8, 3, release);
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
    parcels_out_init(&out, 8, 3, release);
    parcels_out_add(&out, parcel_of(0, 10), 5);
    assert_false(parcels_out_is_late(&out, 12));
    assert_true(parcels_out_is_late(&out, 13));
    parcels_out_went_direct(&out, 1);
    parcels_out_add(&out, parcel_of(0, PARCEL_BYTES_A_TICK), 13); /* it has more time */
    assert_false(parcels_out_is_late(&out, 24));                  /* the first is on its own link */
    parcels_out_confirm(&out, 1);
    assert_false(parcels_out_is_late(&out, 23));
    assert_true(parcels_out_is_late(&out, 24));
    assert_int_equal(parcels_out_again(&out)->serial, 2);
    assert_null(parcels_out_again(&out));
    assert_false(parcels_out_is_late(&out, 24));
    parcels_out_clear(&out);
}

static void test_waits_anew(void **state)
{
    (void)state;
    struct parcels_out out;
    parcels_out_init(&out, 8, 3, release);
    parcels_out_wait(&out, 1);
    parcels_out_add(&out, parcel_of(0, 10), 5);
    parcels_out_add(&out, parcel_of(0, PARCEL_BYTES_A_TICK), 6);
    assert_true(parcels_out_is_late(&out, 20));
    parcels_out_wait(&out, 20);
    assert_false(parcels_out_is_late(&out, 27));
    assert_true(parcels_out_is_late(&out, 28));
    assert_int_equal(out.first->next->due, 31);
    parcels_out_clear(&out);
}

/* An agent keeps all that may be ahead. */
static void test_full(void **state)
{
    (void)state;
    struct parcels_out out;
    struct parcels_in in = {.taken = 0};
    parcels_out_init(&out, 8, 1, release);
    assert_false(parcels_out_is_full(&out, 2 * PARCEL_AHEAD_BYTES)); /* it overtakes nothing */
    parcels_out_add(&out, parcel_of(0, 10), 5);
    assert_false(parcels_out_is_full(&out, PARCEL_AHEAD_BYTES - 10));
    assert_true(parcels_out_is_full(&out, PARCEL_AHEAD_BYTES - 9));
    while (!parcels_out_is_full(&out, 1)) {
        parcels_out_add(&out, parcel_of(0, 1), 5);
        assert_int_equal(parcels_in_take(&in, out.sent), PARCEL_AHEAD);
    }
    assert_int_equal(out.sent, PARCEL_WINDOW + 1);
    assert_int_equal(parcels_in_take(&in, 1), PARCEL_NEXT);
    assert_int_equal(in.taken, out.sent);
    parcels_out_clear(&out);
}

static void test_each_once_in_any_order(void **state)
{
    (void)state;
    struct parcels_in in = {.taken = 0};
    assert_false(parcels_in_owes(&in));
    assert_int_equal(PARCEL_AHEAD, parcels_in_take(&in, 3));
    assert_int_equal(PARCEL_AHEAD, parcels_in_take(&in, 2));
    assert_int_equal(PARCEL_AHEAD, parcels_in_take(&in, 5));
    assert_int_equal(PARCEL_KNOWN, parcels_in_take(&in, 3)); /* again */
    assert_int_equal(in.taken, 0);
    assert_int_equal(PARCEL_NEXT, parcels_in_take(&in, 1));
    assert_int_equal(in.taken, 3);
    assert_int_equal(PARCEL_KNOWN, parcels_in_take(&in, 2));
    assert_int_equal(PARCEL_KNOWN, parcels_in_take(&in, 5));
    assert_int_equal(PARCEL_NEXT, parcels_in_take(&in, 4));
    assert_int_equal(in.taken, 5);
    assert_int_equal(PARCEL_NEXT, parcels_in_take(&in, 6));
    assert_int_equal(in.taken, 6);
    assert_int_equal(in.ahead, 0);
}

static void test_what_the_sender_is_told(void **state)
{
    (void)state;
    struct parcels_in in = {.taken = 0};
    parcels_in_take(&in, 1);
    assert_true(parcels_in_owes(&in));
    assert_int_equal(parcels_in_tell(&in), 1);
    assert_false(parcels_in_owes(&in));
    parcels_in_take(&in, 1); /* it was told that, on a link that loses nothing */
    parcels_in_take(&in, 3);
    assert_false(parcels_in_owes(&in));
}

static void test_one_that_is_far_ahead(void **state)
{
    (void)state;
    struct parcels_in in = {.taken = 9};
    assert_int_equal(PARCEL_KNOWN,
                     parcels_in_take(&in, 10 + PARCEL_WINDOW + 1)); /* it will come again */
    assert_int_equal(PARCEL_KNOWN, parcels_in_take(&in, UINT64_MAX));
    assert_int_equal(PARCEL_AHEAD, parcels_in_take(&in, 10 + PARCEL_WINDOW));
    assert_int_equal(PARCEL_KNOWN, parcels_in_take(&in, 10 + PARCEL_WINDOW));
    for (uint64_t serial = 10; serial < 10 + PARCEL_WINDOW; serial++)
        assert_int_equal(PARCEL_NEXT, parcels_in_take(&in, serial));
    assert_int_equal(in.taken, 10 + PARCEL_WINDOW);
    assert_int_equal(in.ahead, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kept_until_confirmed),
        cmocka_unit_test(test_late),
        cmocka_unit_test(test_waits_anew),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_each_once_in_any_order),
        cmocka_unit_test(test_what_the_sender_is_told),
        cmocka_unit_test(test_one_that_is_far_ahead),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
