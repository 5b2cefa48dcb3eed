/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "core/names.h"

enum { KEYS = 2000 };

/* Removal must not break the way to keys that had to go around it. */
static void test_many_keys(void **state)
{
    (void)state;
    struct names names = {0};
    char *keys[KEYS];
    assert_null(names_get(&names, "none"));
    assert_null(names_remove(&names, "none"));
    for (int i = 0; i < KEYS; i++) {
        keys[i] = mem_printf("key %d", i);
        names_put(&names, keys[i], keys[i]);
    }
    for (int i = 0; i < KEYS; i += 3)
        assert_ptr_equal(names_remove(&names, keys[i]), keys[i]);
    for (int i = 0; i < KEYS; i++)
        assert_ptr_equal(names_get(&names, keys[i]), i % 3 == 0 ? NULL : keys[i]);
    assert_int_equal(names.count, KEYS - (KEYS + 2) / 3);
    for (int i = 0; i < KEYS; i++) {
        names_remove(&names, keys[i]);
        free(keys[i]);
    }
    assert_int_equal(names.count, 0);
    names_destroy(&names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_many_keys)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
