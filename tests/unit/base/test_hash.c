/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/map.h"

/* From the authors of FNV. */
static void test_known_values(void **state)
{
    (void)state;
    assert_true(hash_add(HASH_START, "", 0) == UINT64_C(0xcbf29ce484222325));
    assert_true(hash_add(HASH_START, "a", 1) == UINT64_C(0xaf63dc4c8601ec8c));
    assert_true(hash_add(HASH_START, "foobar", 6) == UINT64_C(0x85944171f73967e8));
    assert_true(hash_add(HASH_START, "chongo was here!\n", 17) == UINT64_C(0x46810940eff5f915));
}

static void test_piece_by_piece(void **state)
{
    (void)state;
    uint64_t hash = hash_add(HASH_START, "foo", 3);
    assert_true(hash_add(hash, "bar", 3) == hash_add(HASH_START, "foobar", 6));
    assert_true(hash_add(HASH_START, "a\0b", 3) != hash_add(HASH_START, "a\0c", 3));
}

static void test_tables(void **state)
{
    (void)state;
    uint64_t hash = hash_add(HASH_START, "node17", 6);
    assert_true(hash_of_bytes("node17", 6) == (size_t)(hash ^ hash >> 32));
    /* the low bits spread over a small table, also if only the last letter differs */
    unsigned seen = 0;
    for (char last = 'a'; last <= 'z'; last++)
        seen |= 1u << (hash_of_bytes((char[]){'n', 'o', 'd', 'e', last}, 5) & 7);
    assert_int_equal(seen, 0xff);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_values),
        cmocka_unit_test(test_piece_by_piece),
        cmocka_unit_test(test_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
