/* SPDX-License-Identifier: Apache-2.0 */
/* What a driver says of its ranks, as a table for PMIx tools. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "features/pmix_tools/process_table.h"

static int read_text(struct process_table *table, const char *text)
{
    json_t *status = json_loads(text, 0, NULL);
    struct error err = ERROR_INIT;
    assert_non_null(status);
    int result = process_table_read(table, status, &err);
    assert_int_equal(result < 0, err.text[0] != '\0');
    json_decref(status);
    return result;
}

static void test_rows(void **state)
{
    (void)state;
    struct process_table table;
    assert_int_equal(
        read_text(&table, "{\"job\": \"j-1\", \"pid\": 7, \"command\": \"./train -x : 3\", "
                          "\"ranks\": ["
                          "{\"rank\": 0, \"host\": \"a\", \"pid\": 11, \"state\": \"running\"},"
                          "{\"rank\": 1, \"host\": \"b\", \"pid\": 12, \"exit_code\": 3},"
                          "{\"rank\": 2, \"host\": \"b\", \"pid\": 13, \"signal\": 9}]}"),
        0);
    assert_int_equal(table.count, 3);
    assert_int_equal(table.driver, 7);
    assert_string_equal(table.program, ""); /* it may be two programs */
    assert_string_equal(table.rows[1].host, "b");
    assert_string_equal(table.rows[1].nspace, "j-1");
    assert_int_equal(table.rows[0].pid, 11);
    assert_false(table.rows[0].ended);
    assert_true(table.rows[1].ended && table.rows[2].ended);
    assert_int_equal(table.rows[1].exit_code, 3);
    assert_int_equal(table.rows[2].exit_code, 128 + 9);
    process_table_clear(&table);
    assert_int_equal(read_text(&table, "{\"job\": \"j\", \"command\": \"./a b\", \"ranks\": []}"),
                     0);
    assert_string_equal(table.program, "./a");
    assert_int_equal(table.count, 0);
    process_table_clear(&table);
    process_table_clear(&table);
}

/* A rank that cannot be one is left out, a status that is none is refused. */
static void test_nonsense(void **state)
{
    (void)state;
    static const char *const refused[] = {"{}",
                                          "[]",
                                          "{\"job\": \"j\"}",
                                          "{\"job\": 3, \"ranks\": []}",
                                          "{\"job\": \"\", \"ranks\": []}",
                                          "{\"job\": \"j\", \"ranks\": {}}"};
    struct process_table table;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        assert_int_equal(read_text(&table, refused[i]), -1);
        process_table_clear(&table);
    }
    assert_int_equal(
        read_text(
            &table,
            "{\"job\": \"j\", \"pid\": -1, \"ranks\": [3, null, [], {}, "
            "{\"rank\": -1, \"host\": \"a\", \"pid\": 1}, {\"rank\": 0, \"pid\": 1}, "
            "{\"rank\": 0, \"host\": \"a\"}, {\"rank\": 99999999999, \"host\": \"a\", \"pid\": 1}, "
            "{\"rank\": 1, \"host\": \"a\", \"pid\": 4294967297}, "
            "{\"rank\": 4, \"host\": \"a\", \"pid\": 5, \"exit_code\": \"x\"}]}"),
        0);
    assert_int_equal(table.count, 1);
    assert_int_equal(table.driver, 0);
    assert_int_equal(table.rows[0].rank, 4);
    assert_false(table.rows[0].ended);
    process_table_clear(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows),
                                       cmocka_unit_test(test_nonsense)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
