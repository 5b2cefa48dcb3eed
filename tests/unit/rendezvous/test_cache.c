/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "rendezvous/proxy_test.h"

static void keep(struct rendezvous_cache *cache, const char *scope, const char *key,
                 const char *text)
{
    rendezvous_cache_keep(cache, rendezvous_cache_generation(cache, scope), scope, key, text,
                          strlen(text));
}

static void assert_kept(struct rendezvous_cache *cache, const char *scope, const char *key,
                        const char *text)
{
    const struct rendezvous_blob *blob = rendezvous_cache_get(cache, scope, key);
    if (text == NULL) {
        assert_null(blob);
        return;
    }
    assert_non_null(blob);
    assert_int_equal(blob->length, strlen(text));
    assert_memory_equal(blob->bytes, text, blob->length);
}

static void test_keep_and_forget(void **state)
{
    (void)state;
    struct rendezvous_cache *cache = rendezvous_cache_create(10000);
    assert_kept(cache, "global", "0", NULL);
    keep(cache, "global", "0", "zero");
    keep(cache, "global", "1", "");
    keep(cache, "cross_0", "0", "other");
    assert_kept(cache, "global", "0", "zero");
    assert_kept(cache, "global", "1", "");
    keep(cache, "global", "0", "new");
    assert_kept(cache, "global", "0", "new");
    rendezvous_cache_remove(cache, "global", "0");
    rendezvous_cache_remove(cache, "nowhere", "0");
    assert_kept(cache, "global", "0", NULL);
    rendezvous_cache_forget(cache, "global");
    assert_kept(cache, "global", "1", NULL);
    assert_kept(cache, "cross_0", "0", "other");
    rendezvous_cache_reset(cache);
    assert_kept(cache, "cross_0", "0", NULL);
    rendezvous_cache_destroy(cache);
    rendezvous_cache_destroy(NULL);
}

/* An answer to a question from before the scope was forgotten is of the past. */
static void test_old_answers_are_not_kept(void **state)
{
    (void)state;
    struct rendezvous_cache *cache = rendezvous_cache_create(10000);
    uint64_t before = rendezvous_cache_generation(cache, "global");
    uint64_t elsewhere = rendezvous_cache_generation(cache, "cross_0");
    rendezvous_cache_forget(cache, "global"); /* of a scope that was never seen */
    rendezvous_cache_keep(cache, before, "global", "0", "old", 3);
    assert_kept(cache, "global", "0", NULL);
    rendezvous_cache_keep(cache, elsewhere, "cross_0", "0", "fine", 4);
    assert_kept(cache, "cross_0", "0", "fine");

    uint64_t second = rendezvous_cache_generation(cache, "global");
    assert_true(second != before);
    rendezvous_cache_reset(cache);
    rendezvous_cache_keep(cache, second, "global", "0", "old", 3);
    rendezvous_cache_keep(cache, elsewhere, "cross_0", "0", "old", 3);
    assert_kept(cache, "global", "0", NULL);
    assert_kept(cache, "cross_0", "0", NULL);
    keep(cache, "global", "0", "new");
    assert_kept(cache, "global", "0", "new");
    rendezvous_cache_destroy(cache);
}

static void test_memory_limit(void **state)
{
    (void)state;
    struct rendezvous_cache *cache = rendezvous_cache_create(1000);
    char big[600] = {0};
    rendezvous_cache_keep(cache, 0, "s", "0", big, sizeof(big));
    rendezvous_cache_keep(cache, 0, "s", "1", big, sizeof(big));
    assert_non_null(rendezvous_cache_get(cache, "s", "0"));
    assert_null(rendezvous_cache_get(cache, "s", "1"));
    rendezvous_cache_remove(cache, "s", "0"); /* gives its room back */
    rendezvous_cache_keep(cache, 0, "s", "1", big, sizeof(big));
    assert_non_null(rendezvous_cache_get(cache, "s", "1"));
    rendezvous_cache_limit(cache, 500); /* below what it holds: nothing more comes in */
    rendezvous_cache_keep(cache, 0, "s", "2", big, 1);
    assert_null(rendezvous_cache_get(cache, "s", "2"));
    rendezvous_cache_destroy(cache);
}

/* Endless new scopes (process sets that come and go) do not fill the memory, and no scope gets a
 * generation again that an old question may still carry. */
static void test_many_scopes(void **state)
{
    (void)state;
    struct rendezvous_cache *cache = rendezvous_cache_create(1000000);
    uint64_t before = rendezvous_cache_generation(cache, "first");
    rendezvous_cache_forget(cache, "first");
    for (int i = 0; i < RENDEZVOUS_CACHE_SCOPES_MAX * 2 + 5; i++) {
        char scope[32];
        snprintf(scope, sizeof(scope), "set_%d", i);
        if (i % 2 == 0)
            keep(cache, scope, "0", "x");
        else
            rendezvous_cache_forget(cache, scope);
    }
    rendezvous_cache_keep(cache, before, "first", "0", "old", 3);
    assert_kept(cache, "first", "0", NULL);
    rendezvous_cache_destroy(cache);
}

/* Also when the scope is known again by the time that the old answer comes. */
static void test_old_answers_to_a_known_scope(void **state)
{
    (void)state;
    struct rendezvous_cache *cache = rendezvous_cache_create(10000);
    uint64_t before = rendezvous_cache_generation(cache, "global");
    rendezvous_cache_reset(cache);
    uint64_t now = rendezvous_cache_generation(cache, "global");
    assert_true(now != before);
    keep(cache, "global", "0", "new");
    assert_true(rendezvous_cache_generation(cache, "global") == now);
    rendezvous_cache_keep(cache, before, "global", "0", "old", 3);
    assert_kept(cache, "global", "0", "new");
    rendezvous_cache_destroy(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keep_and_forget),
        cmocka_unit_test(test_old_answers_are_not_kept),
        cmocka_unit_test(test_memory_limit),
        cmocka_unit_test(test_many_scopes),
        cmocka_unit_test(test_old_answers_to_a_known_scope),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
