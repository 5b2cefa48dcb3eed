/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "pmi1/dialogue.h"

static void test_put_and_get(void **state)
{
    (void)state;
    struct kvs room = {.count = 0}, *kvs = &room;
    assert_null(kvs_get(kvs, "a"));
    assert_int_equal(kvs_put(kvs, "a", "1"), KVS_OK);
    assert_int_equal(kvs_put(kvs, "", ""), KVS_OK);
    assert_int_equal(kvs_put(kvs, "a", "2"), KVS_DUPLICATE);
    assert_string_equal(kvs_get(kvs, "a"), "1");
    assert_string_equal(kvs_get(kvs, ""), "");
    assert_int_equal(kvs->count, 2);
    kvs_clear(kvs);
}

static void test_growth_keeps_order(void **state)
{
    (void)state;
    struct kvs room = {.count = 0}, *kvs = &room;
    for (int i = 0; i < 20000; i++) {
        char *key AUTO_FREE = mem_printf("key-%d", i * 7);
        char *value AUTO_FREE = mem_printf("%d", i);
        assert_int_equal(kvs_put(kvs, key, value), KVS_OK);
    }
    for (int i = 0; i < 20000; i++) {
        char *key AUTO_FREE = mem_printf("key-%d", i * 7);
        char *value AUTO_FREE = mem_printf("%d", i);
        assert_string_equal(kvs_get(kvs, key), value);
        assert_string_equal(kvs->entries[i]->key, key);
        assert_string_equal(kvs->entries[i]->value, value);
    }
    assert_null(kvs_get(kvs, "key-1"));
    kvs_clear(kvs);
}

static void test_bounded(void **state)
{
    (void)state;
    struct kvs room = {.count = 0}, *kvs = &room;
    size_t size = KVS_BYTES_MAX / 4;
    char *big AUTO_FREE = mem_alloc(size + 1);
    for (size_t i = 0; i < size; i++)
        big[i] = 'x';
    assert_int_equal(kvs_put(kvs, "1", big), KVS_OK);
    assert_int_equal(kvs_put(kvs, "2", big), KVS_OK);
    assert_int_equal(kvs_put(kvs, "3", big), KVS_OK);
    assert_int_equal(kvs_put(kvs, "4", big), KVS_FULL);
    assert_null(kvs_get(kvs, "4"));
    assert_int_equal(kvs_put(kvs, "5", "small"), KVS_OK);
    kvs_clear(kvs);
}

/* The limit counts keys and values with their ends, and is reached to the last byte. */
static void test_full_to_the_last_byte(void **state)
{
    (void)state;
    for (size_t over = 0; over < 2; over++) {
        struct kvs room = {.count = 0}, *kvs = &room;
        size_t length = KVS_BYTES_MAX - strlen("key") - 2 + over;
        char *value AUTO_FREE = mem_alloc(length + 1);
        memset(value, 'x', length);
        assert_int_equal(kvs_put(kvs, "key", value), over == 0 ? KVS_OK : KVS_FULL);
        assert_int_equal(kvs->count, over == 0 ? 1 : 0);
        assert_int_equal(kvs_put(kvs, "", ""), over == 0 ? KVS_FULL : KVS_OK);
        kvs_clear(kvs);
    }
}

/* Words with the same FNV-1a hash. */
static void test_keys_of_one_hash(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"costarring", "liquid"}, {"declinate", "macallums"}, {"altarage", "zinke"}};
    struct kvs room = {.count = 0}, *kvs = &room;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(kvs_put(kvs, pairs[i][0], "one"), KVS_OK);
        assert_null(kvs_get(kvs, pairs[i][1]));
        assert_int_equal(kvs_put(kvs, pairs[i][1], "other"), KVS_OK);
        assert_string_equal(kvs_get(kvs, pairs[i][0]), "one");
        assert_string_equal(kvs_get(kvs, pairs[i][1]), "other");
    }
    kvs_clear(kvs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_put_and_get),      cmocka_unit_test(test_growth_keeps_order),
        cmocka_unit_test(test_bounded),          cmocka_unit_test(test_full_to_the_last_byte),
        cmocka_unit_test(test_keys_of_one_hash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
