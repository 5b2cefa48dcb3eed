/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <stdio.h>

#include "pmix/publish_store.h"

static const struct store_owner a0 = {"a", 0, 0}, a1 = {"a", 1, 0}, a2 = {"a", 2, 1},
                                b0 = {"b", 0, 0};

struct seen {
    int answers;
    enum store_status status;
    size_t count;
    char values[4][16];
    uint32_t publisher;
};

static void on_answer(void *context, enum store_status status, const struct store_item *items,
                      size_t count)
{
    struct seen *seen = context;
    seen->answers++;
    seen->status = status;
    seen->count = count;
    assert_in_range(count, 0, 4);
    for (size_t i = 0; i < count; i++) {
        assert_in_range(items[i].length, 0, 15);
        memcpy(seen->values[i], items[i].bytes, items[i].length);
        seen->values[i][items[i].length] = '\0';
        seen->publisher = items[i].owner.rank;
    }
}

static enum store_status put(struct publish_store *store, const struct store_owner *owner,
                             enum store_range range, enum store_keep keep, const char *key,
                             const char *value)
{
    struct store_item item = {.key = key, .bytes = value, .length = strlen(value)};
    return publish_store_publish(store, owner, range, keep, &item, 1);
}

static struct seen get(struct publish_store *store, const struct store_owner *who,
                       enum store_range range, const char *key)
{
    struct seen seen = {0};
    char *keys[] = {(char *)(uintptr_t)key, NULL};
    publish_store_lookup(store, who, range, keys, 0, -1, on_answer, &seen);
    assert_int_equal(seen.answers, 1);
    return seen;
}

static bool has(struct publish_store *store, const struct store_owner *who, enum store_range range,
                const char *key, const char *value)
{
    struct seen seen = get(store, who, range, key);
    return seen.status == STORE_OK && strcmp(seen.values[0], value) == 0;
}

static void test_ranges(void **state)
{
    (void)state;
    struct publish_store *store = publish_store_create();
    assert_int_equal(put(store, &a0, STORE_PROC, STORE_KEEP_FOREVER, "p", "1"), STORE_OK);
    assert_int_equal(put(store, &a0, STORE_LOCAL, STORE_KEEP_FOREVER, "l", "2"), STORE_OK);
    assert_int_equal(put(store, &a0, STORE_NSPACE, STORE_KEEP_FOREVER, "n", "3"), STORE_OK);
    assert_int_equal(put(store, &a0, STORE_GLOBAL, STORE_KEEP_FOREVER, "g", "4"), STORE_OK);
    assert_int_equal(put(store, &a0, STORE_RM, STORE_KEEP_FOREVER, "r", "5"), STORE_OK);
    assert_true(has(store, &a0, STORE_GLOBAL, "p", "1"));
    assert_false(has(store, &a1, STORE_GLOBAL, "p", "1"));
    assert_true(has(store, &b0, STORE_GLOBAL, "l", "2")); /* the same node */
    assert_false(has(store, &a2, STORE_GLOBAL, "l", "2"));
    assert_true(has(store, &a2, STORE_GLOBAL, "n", "3"));
    assert_false(has(store, &b0, STORE_GLOBAL, "n", "3"));
    assert_true(has(store, &b0, STORE_GLOBAL, "g", "4"));
    assert_false(has(store, &b0, STORE_SESSION, "g", "4")); /* wider than asked for */
    assert_false(has(store, &a0, STORE_RM, "r", "5"));
    publish_store_destroy(store);
    publish_store_destroy(NULL);
}

static void test_duplicates(void **state)
{
    (void)state;
    struct publish_store *store = publish_store_create();
    assert_int_equal(put(store, &a0, STORE_NSPACE, STORE_KEEP_FOREVER, "k", "a"), STORE_OK);
    assert_int_equal(put(store, &a1, STORE_NSPACE, STORE_KEEP_FOREVER, "k", "x"), STORE_DUPLICATE);
    assert_int_equal(put(store, &b0, STORE_NSPACE, STORE_KEEP_FOREVER, "k", "b"), STORE_OK);
    assert_int_equal(put(store, &a0, STORE_PROC, STORE_KEEP_FOREVER, "k", "own"), STORE_OK);
    assert_true(has(store, &a0, STORE_GLOBAL, "k", "own")); /* the narrowest one */
    assert_true(has(store, &a1, STORE_GLOBAL, "k", "a"));
    assert_true(has(store, &b0, STORE_GLOBAL, "k", "b"));
    struct store_item twice[] = {{.key = "t", .bytes = "1", .length = 1},
                                 {.key = "t", .bytes = "2", .length = 1}};
    assert_int_equal(publish_store_publish(store, &a0, STORE_SESSION, STORE_KEEP_FOREVER, twice, 2),
                     STORE_DUPLICATE);
    struct store_item mixed[] = {{.key = "new", .bytes = "1", .length = 1},
                                 {.key = "k", .bytes = "2", .length = 1}};
    assert_int_equal(publish_store_publish(store, &a0, STORE_NSPACE, STORE_KEEP_FOREVER, mixed, 2),
                     STORE_DUPLICATE);
    assert_int_equal(get(store, &a0, STORE_GLOBAL, "new").status,
                     STORE_NOT_FOUND); /* all or none */
    assert_int_equal(publish_store_count(store), 3);
    publish_store_destroy(store);
}

static void test_lifetimes(void **state)
{
    (void)state;
    struct publish_store *store = publish_store_create();
    put(store, &a0, STORE_GLOBAL, STORE_KEEP_FIRST_READ, "read", "1");
    put(store, &a0, STORE_GLOBAL, STORE_KEEP_PROC, "proc", "2");
    put(store, &a1, STORE_GLOBAL, STORE_KEEP_PROC, "proc1", "3");
    put(store, &a0, STORE_GLOBAL, STORE_KEEP_NSPACE, "nspace", "4");
    put(store, &a0, STORE_GLOBAL, STORE_KEEP_SESSION, "session", "5");
    assert_true(has(store, &b0, STORE_GLOBAL, "read", "1"));
    assert_int_equal(get(store, &b0, STORE_GLOBAL, "read").status, STORE_NOT_FOUND);
    publish_store_end_proc(store, "a", 0);
    assert_int_equal(get(store, &b0, STORE_GLOBAL, "proc").status, STORE_NOT_FOUND);
    assert_true(has(store, &b0, STORE_GLOBAL, "proc1", "3"));
    assert_true(has(store, &b0, STORE_GLOBAL, "nspace", "4"));
    publish_store_end_nspace(store, "b");
    assert_int_equal(publish_store_count(store), 3);
    publish_store_end_nspace(store, "a");
    assert_int_equal(publish_store_count(store), 1);
    assert_true(has(store, &b0, STORE_GLOBAL, "session", "5"));
    publish_store_destroy(store);
}

static void test_unpublish(void **state)
{
    (void)state;
    struct publish_store *store = publish_store_create();
    char *keys[] = {(char *)"x", (char *)"absent", NULL};
    put(store, &a0, STORE_SESSION, STORE_KEEP_SESSION, "x", "1");
    put(store, &a0, STORE_SESSION, STORE_KEEP_SESSION, "y", "2");
    put(store, &a0, STORE_NSPACE, STORE_KEEP_SESSION, "x", "3");
    publish_store_unpublish(store, &a1, STORE_SESSION, keys); /* not the publisher */
    assert_int_equal(publish_store_count(store), 3);
    publish_store_unpublish(store, &a0, STORE_SESSION, keys);
    assert_int_equal(publish_store_count(store), 2);
    assert_true(has(store, &a1, STORE_SESSION, "x", "3"));
    publish_store_unpublish(store, &a0, STORE_SESSION, NULL);
    assert_int_equal(publish_store_count(store), 1);
    publish_store_destroy(store);
}

static void test_waiting(void **state)
{
    (void)state;
    struct publish_store *store = publish_store_create();
    struct seen all = {0};
    struct seen one = {0};
    struct seen other = {0};
    char *keys[] = {(char *)"x", (char *)"y", NULL};
    publish_store_lookup(store, &a0, STORE_SESSION, keys, 99, -1, on_answer, &all);
    publish_store_lookup(store, &a1, STORE_SESSION, keys, 1, -1, on_answer, &one);
    publish_store_lookup(store, &b0, STORE_SESSION, keys, 2, -1, on_answer, &other);
    assert_int_equal(all.answers + one.answers + other.answers, 0);
    put(store, &a2, STORE_NSPACE, STORE_KEEP_SESSION, "y", "2");
    assert_int_equal(one.answers, 1);
    assert_int_equal(one.status, STORE_PARTIAL);
    assert_string_equal(one.values[0], "2");
    assert_int_equal(one.publisher, 2);
    assert_int_equal(all.answers, 0);
    put(store, &a2, STORE_SESSION, STORE_KEEP_SESSION, "x", "1");
    assert_int_equal(all.answers, 1);
    assert_int_equal(all.status, STORE_OK);
    assert_string_equal(all.values[0], "1");
    assert_string_equal(all.values[1], "2");
    assert_int_equal(other.answers, 0); /* y is not in its namespace */
    publish_store_end_proc(store, "b", 0);
    assert_int_equal(other.answers, 1);
    assert_int_equal(other.status, STORE_NOT_FOUND);
    assert_int_equal(one.answers, 1);
    publish_store_destroy(store);
}

static void test_deadlines(void **state)
{
    (void)state;
    struct publish_store *store = publish_store_create();
    struct seen early = {0};
    struct seen late = {0};
    struct seen never = {0};
    char *keys[] = {(char *)"x", NULL};
    assert_int_equal(publish_store_deadline(store), -1);
    publish_store_lookup(store, &a0, STORE_SESSION, keys, 1, 2000, on_answer, &late);
    publish_store_lookup(store, &a0, STORE_SESSION, keys, 1, 1000, on_answer, &early);
    publish_store_lookup(store, &a0, STORE_SESSION, keys, 1, -1, on_answer, &never);
    assert_int_equal(publish_store_deadline(store), 1000);
    publish_store_expire(store, 999);
    assert_int_equal(early.answers, 0);
    publish_store_expire(store, 1000);
    assert_int_equal(early.answers, 1);
    assert_int_equal(early.status, STORE_TIMEOUT);
    assert_int_equal(early.count, 0);
    assert_int_equal(publish_store_deadline(store), 2000);
    put(store, &a1, STORE_SESSION, STORE_KEEP_SESSION, "x", "1");
    assert_int_equal(late.status, STORE_OK);
    assert_int_equal(never.answers, 1);
    assert_int_equal(publish_store_deadline(store), -1);
    publish_store_lookup(store, &b0, STORE_SESSION, (char *[]){(char *)"z", NULL}, 1, -1, on_answer,
                         &early);
    publish_store_destroy(store); /* answers the one that still waits */
    assert_int_equal(early.answers, 2);
    assert_int_equal(early.status, STORE_NOT_FOUND);
}

static void test_full(void **state)
{
    (void)state;
    struct publish_store *store = publish_store_create();
    static char big[STORE_BYTES_MAX / 2 - 500]; /* keeping it costs something too */
    struct store_item item = {.key = "1", .bytes = big, .length = sizeof(big)};
    assert_int_equal(publish_store_publish(store, &a0, STORE_SESSION, STORE_KEEP_SESSION, &item, 1),
                     STORE_OK);
    item.key = "2";
    assert_int_equal(publish_store_publish(store, &a0, STORE_SESSION, STORE_KEEP_SESSION, &item, 1),
                     STORE_OK);
    item = (struct store_item){.key = "3", .bytes = big, .length = 1000};
    assert_int_equal(publish_store_publish(store, &a0, STORE_SESSION, STORE_KEEP_SESSION, &item, 1),
                     STORE_FULL);
    int small = 0;
    enum store_status status = STORE_OK;
    while (status == STORE_OK && small < 100) {
        char key[16];
        snprintf(key, sizeof(key), "s%d", small++);
        status = put(store, &a0, STORE_SESSION, STORE_KEEP_SESSION, key, "");
    }
    assert_int_equal(status, STORE_FULL); /* however small they are */
    publish_store_unpublish(store, &a0, STORE_SESSION, (char *[]){(char *)"1", NULL});
    assert_int_equal(put(store, &a0, STORE_SESSION, STORE_KEEP_SESSION, "3", "x"), STORE_OK);
    publish_store_destroy(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranges),    cmocka_unit_test(test_duplicates),
        cmocka_unit_test(test_lifetimes), cmocka_unit_test(test_unpublish),
        cmocka_unit_test(test_waiting),   cmocka_unit_test(test_deadlines),
        cmocka_unit_test(test_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
