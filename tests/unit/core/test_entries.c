/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/entries.h"

static struct request request(char *key)
{
    return (struct request){
        .key = key, .kind = KIND_ALLREDUCE, .prescale = 1, .postscale = 1, .priority = 3};
}

static void test_by_number_and_by_key(void **state)
{
    (void)state;
    struct entries entries;
    struct request a = request("ta"), b = request("tb");
    entries_init(&entries, 4);
    struct entry *one = entries_add(&entries, 2, &a, true, 10);
    struct entry *two = entries_add(&entries, NO_ID, &b, false, 20);
    assert_ptr_equal(entries_find(&entries, 2, "ta"), one);
    assert_ptr_equal(entries_find(&entries, NO_ID, "tb"), two);
    assert_null(entries_find(&entries, 1, "tb"));
    assert_null(entries_find(&entries, NO_ID, "ta"));
    assert_ptr_equal(one->request.key, a.key); /* borrowed */
    assert_true(two->request.key != b.key);
    assert_ptr_equal(entries.first, one);
    assert_ptr_equal(entries.last, two);
    entries_remove(&entries, one);
    assert_ptr_equal(entries.first, two);
    assert_null(entries_find(&entries, 2, "ta"));
    entries_remove(&entries, two);
    assert_null(entries.first);
    assert_null(entries_find(&entries, NO_ID, "tb"));
    entries_destroy(&entries);
}

/* An entry that is used again has nothing of what it was before. */
static void test_used_again(void **state)
{
    (void)state;
    struct entries entries;
    struct request a = request("ta"), other = request("ta"), b = request("tb");
    entries_init(&entries, 4);
    struct entry *entry = entries_add(&entries, 0, &a, true, 10);
    other.type = HVD_INT64;
    other.priority = 7;
    entry_add(entry, 0, &a);
    entry_add(entry, 1, &other);
    entry->ready = 5;
    entry->warned_ns = 15;
    assert_non_null(entry->difference);
    assert_int_equal(entry->request.priority, 7);
    assert_int_equal(a.priority, 3);
    entry_own(entry); /* from now on the cache may change */
    assert_true(entry->request.key != a.key);
    entries_remove(&entries, entry);
    assert_ptr_equal(entries_add(&entries, NO_ID, &b, false, 20), entry);
    assert_false(bits_any(&entry->have) || bits_any(&entry->others));
    assert_null(entry->difference);
    assert_null(entry->other.key);
    assert_int_equal(entry->ready, 0);
    assert_int_equal(entry->warned_ns, 20);
    assert_int_equal(entry->request.priority, 3);
    entries_destroy(&entries);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_number_and_by_key),
        cmocka_unit_test(test_used_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
