/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "timeline/text_test.h"

static void test_one_for_each_tensor_and_set(void **state)
{
    (void)state;
    struct timeline_rows rows = {.given = 0};
    bool is_new = false;
    struct timeline_row *row = timeline_rows_get(&rows, 0, "a", &is_new);
    assert_true(is_new);
    assert_int_equal(row->number, 1);
    assert_int_equal(row->state, ROW_IDLE);
    row->state = ROW_ACTS;
    assert_int_equal(timeline_rows_get(&rows, 1, "a", &is_new)->number, 2);
    assert_true(is_new);
    assert_int_equal(timeline_rows_get(&rows, 0, "b", &is_new)->number, 3);
    row = timeline_rows_get(&rows, 0, "a", &is_new);
    assert_false(is_new);
    assert_int_equal(row->number, 1);
    assert_int_equal(row->state, ROW_ACTS);
    timeline_rows_destroy(&rows);
}

/* Names that never come again do not fill the memory, and no number is given twice. */
static void test_endless_names(void **state)
{
    (void)state;
    struct timeline_rows rows = {.given = 0};
    char name[32];
    bool is_new = false;
    for (int i = 0; i < TIMELINE_ROWS_MAX; i++) {
        snprintf(name, sizeof(name), "noname.%d", i);
        assert_int_equal(timeline_rows_get(&rows, 0, name, &is_new)->number, i + 1);
        assert_true(is_new);
    }
    timeline_rows_get(&rows, 0, "noname.7", &is_new);
    assert_false(is_new);
    assert_int_equal(timeline_rows_get(&rows, 0, "one more", &is_new)->number,
                     TIMELINE_ROWS_MAX + 1);
    assert_int_equal(timeline_rows_get(&rows, 0, "noname.7", &is_new)->number,
                     TIMELINE_ROWS_MAX + 2);
    assert_true(is_new);
    timeline_rows_destroy(&rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_for_each_tensor_and_set),
        cmocka_unit_test(test_endless_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
