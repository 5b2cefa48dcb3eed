/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "rendezvous/table.h"

enum { MANY = 10000 };

static void test_put_get_remove(void **state)
{
    (void)state;
    struct rendezvous_table *table = rendezvous_table_create();
    int one = 1, two = 2;
    assert_null(rendezvous_table_get(table, "a", 1));
    assert_null(rendezvous_table_put(table, "a", 1, &one));
    assert_null(rendezvous_table_put(table, "a\0b", 3, &two)); /* a key is bytes, not a string */
    assert_ptr_equal(rendezvous_table_get(table, "a", 1), &one);
    assert_ptr_equal(rendezvous_table_get(table, "a\0b", 3), &two);
    assert_ptr_equal(rendezvous_table_put(table, "a", 1, &two), &one);
    assert_int_equal(rendezvous_table_count(table), 2);
    assert_ptr_equal(rendezvous_table_remove(table, "a", 1), &two);
    assert_null(rendezvous_table_remove(table, "a", 1));
    assert_int_equal(rendezvous_table_count(table), 1);
    rendezvous_table_destroy(table, NULL);
    rendezvous_table_destroy(NULL, free);
}

static void test_many_and_pop(void **state)
{
    (void)state;
    struct rendezvous_table *table = rendezvous_table_create();
    for (uintptr_t i = 0; i < MANY; i++)
        assert_null(rendezvous_table_put(table, &i, sizeof(i), mem_dup(&i, sizeof(i))));
    for (uintptr_t i = 0; i < MANY; i += 2)
        free(rendezvous_table_remove(table, &i, sizeof(i)));
    assert_int_equal(rendezvous_table_count(table), MANY / 2);
    bool seen[MANY] = {false};
    for (int i = 0; i < MANY / 4; i++) {
        uintptr_t *value = rendezvous_table_pop(table);
        assert_true(*value % 2 == 1 && !seen[*value]);
        seen[*value] = true;
        free(value);
    }
    /* what is put after pops is found by later pops */
    for (uintptr_t i = 0; i < MANY; i += 2)
        rendezvous_table_put(table, &i, sizeof(i), mem_dup(&i, sizeof(i)));
    size_t left = MANY / 2 + MANY / 2 - MANY / 4;
    assert_int_equal(rendezvous_table_count(table), left);
    for (size_t i = 0; i < left / 2; i++)
        free(rendezvous_table_pop(table));
    rendezvous_table_destroy(table, free); /* frees the rest: LeakSanitizer looks */
}

static void test_it_grows_after_pops(void **state)
{
    (void)state;
    struct rendezvous_table *table = rendezvous_table_create();
    for (uintptr_t i = 0; i < 8; i++)
        rendezvous_table_put(table, &i, sizeof(i), mem_dup(&i, sizeof(i)));
    for (int i = 0; i < 7; i++)
        free(rendezvous_table_pop(table));
    for (uintptr_t i = 8; i < MANY; i++)
        rendezvous_table_put(table, &i, sizeof(i), mem_dup(&i, sizeof(i)));
    for (size_t left = MANY - 7; left > 0; left--) {
        assert_int_equal(rendezvous_table_count(table), left);
        uintptr_t *value = rendezvous_table_pop(table);
        assert_non_null(value);
        free(value);
    }
    assert_null(rendezvous_table_pop(table));
    rendezvous_table_destroy(table, free);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_put_get_remove),
        cmocka_unit_test(test_many_and_pop),
        cmocka_unit_test(test_it_grows_after_pops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
