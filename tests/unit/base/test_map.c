/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/map.h"
#include "base/mem.h"

enum { KEYS = 5000 };

static void test_kinds_of_keys(void **state)
{
    (void)state;
    struct map map = {0};
    int one = 1, two = 2, three = 3;
    assert_null(map_get(&map, map_text("a")));
    assert_null(map_remove(&map, map_text("a")));
    assert_null(map_put(&map, map_text("a"), &one));
    assert_null(map_put(&map, map_bytes("a\0b", 3), &two)); /* a key is bytes, not a string */
    assert_null(map_put(&map, map_number(0), &three));
    assert_null(map_get(&map, map_text("")));
    assert_ptr_equal(map_get(&map, map_text("a")), &one);
    assert_ptr_equal(map_get(&map, map_bytes("a\0b", 3)), &two);
    assert_ptr_equal(map_get(&map, map_number(0)), &three);
    assert_null(map_get(&map, map_number(UINT64_C(1) << 32)));
    map_find(&map, map_text("a"))->value = &two;
    assert_ptr_equal(map_remove(&map, map_text("a")), &two);
    assert_null(map_find(&map, map_text("a")));
    assert_int_equal(map.count, 2);
    map_clear(&map, NULL);
    assert_int_equal(map.count, 0);
}

/* The map then borrows the new bytes: the old ones may go. */
static void test_a_key_is_put_again(void **state)
{
    (void)state;
    struct map map = {0};
    char *first = mem_strdup("key"), *second = mem_strdup("key");
    assert_null(map_put(&map, map_text(first), first));
    assert_ptr_equal(map_put(&map, map_text(second), second), first);
    free(first);
    assert_ptr_equal(map_get(&map, map_text("key")), second);
    assert_int_equal(map.count, 1);
    map_clear(&map, free);
}

/* Keys of one hash, too: numbers have their own equality. */
static void test_numbers_of_one_hash(void **state)
{
    (void)state;
    struct map map = {0};
    char *texts[KEYS];
    for (uint64_t i = 0; i < KEYS; i++) {
        struct map_key key = map_number(i);
        key.hash = 7;
        texts[i] = mem_printf("%d", (int)i);
        map_put(&map, key, texts[i]);
        if (i >= 100)
            assert_ptr_equal(map_remove(&map, key), texts[i]);
    }
    for (uint64_t i = 0; i < KEYS; i++) {
        struct map_key key = map_number(i);
        key.hash = 7;
        assert_ptr_equal(map_get(&map, key), i < 100 ? texts[i] : NULL);
        free(texts[i]);
    }
    map_clear(&map, NULL);
}

/* Removal must not break the way to keys that had to go around it. */
static void test_many_keys(void **state)
{
    (void)state;
    struct map map = {0};
    char *keys[KEYS];
    for (int i = 0; i < KEYS; i++) {
        keys[i] = mem_printf("key %d", i);
        assert_null(map_put(&map, map_text(keys[i]), keys[i]));
    }
    for (int i = 0; i < KEYS; i += 3)
        assert_ptr_equal(map_remove(&map, map_text(keys[i])), keys[i]);
    for (int i = 0; i < KEYS; i++)
        assert_ptr_equal(map_get(&map, map_text(keys[i])), i % 3 == 0 ? NULL : keys[i]);
    assert_int_equal(map.count, KEYS - (KEYS + 2) / 3);
    for (int i = 0; i < KEYS; i += 3)
        free(keys[i]);
    map_clear(&map, free); /* the rest: LeakSanitizer looks */
}

static void test_each_value_once(void **state)
{
    (void)state;
    struct map map = {0};
    size_t at = 0, count = 0;
    int values[KEYS];
    bool seen[KEYS] = {false};
    assert_null(map_next(&map, &at));
    for (size_t i = 0; i < KEYS; i++)
        map_put(&map, map_number(i << 40), &values[i]);
    for (int *value = map_next(&map, &at); value != NULL; value = map_next(&map, &at)) {
        assert_false(seen[value - values]);
        seen[value - values] = true;
        count++;
    }
    assert_int_equal(count, KEYS);
    map_clear(&map, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds_of_keys),       cmocka_unit_test(test_a_key_is_put_again),
        cmocka_unit_test(test_numbers_of_one_hash), cmocka_unit_test(test_many_keys),
        cmocka_unit_test(test_each_value_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
