/* SPDX-License-Identifier: Apache-2.0 */
/* What a driver says of its ranks, as a table for PMIx tools. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/mem.h"
#include "features/pmix_tools/pmix_tools_cli_test.h"

static int read_text(struct pmix_table *table, const char *text)
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
    struct pmix_table table;
    assert_int_equal(
        read_text(
            &table,
            "{\"job\": \"j-1.2\", \"id\": \"j-1\", \"command\": \"./train -x : 3\", \"ranks\": ["
            "{\"rank\": 0, \"host\": \"a\", \"epoch\": 1, \"pid\": 11, \"state\": \"running\"},"
            "{\"rank\": 1, \"host\": \"b\", \"epoch\": 1, \"pid\": 12, \"exit_code\": 3},"
            "{\"rank\": 2, \"host\": \"b\", \"epoch\": 1, \"pid\": 13, \"signal\": 9},"
            "{\"rank\": 3, \"host\": \"b\", \"epoch\": 2, \"pid\": 14, \"world\": 1,"
            " \"world_rank\": 0, \"state\": \"running\"}]}"),
        0);
    assert_int_equal(table.count, 4);
    assert_string_equal(table.program, ""); /* it may be two programs */
    assert_string_equal(table.rows[1].host, "b");
    assert_string_equal(table.rows[1].nspace, "j-1@1");
    assert_string_equal(table.rows[3].nspace, "j-1@2");
    assert_int_equal(table.rows[3].rank, 0);
    assert_int_equal(table.nspaces.count, 2);
    assert_int_equal(table.rows[0].pid, 11);
    assert_false(table.rows[0].ended);
    assert_true(table.rows[1].ended && table.rows[2].ended);
    assert_int_equal(table.rows[1].exit_code, 3);
    assert_int_equal(table.rows[2].exit_code, 128 + 9);
    process_table_clear(&table);
    process_table_clear(&table);
}

/* Ranks that have not started have a namespace; those that could not start have no row either. */
static void test_no_row(void **state)
{
    (void)state;
    struct pmix_table table;
    assert_int_equal(
        read_text(&table,
                  "{\"id\": \"j\", \"command\": \"./a b\", \"ranks\": ["
                  "{\"rank\": 0, \"host\": \"a\", \"epoch\": 1, \"state\": \"not started\"},"
                  "{\"rank\": 1, \"host\": \"a\", \"epoch\": 1, \"state\": \"exited\", "
                  "\"pid\": 12}]}"),
        0);
    assert_string_equal(table.program, "./a");
    assert_int_equal(table.count, 0);
    assert_int_equal(table.nspaces.count, 1);
    process_table_clear(&table);
}

/* A rank that cannot be one is left out, a status that is none is refused. */
static void test_nonsense(void **state)
{
    (void)state;
    static const char *const refused[] = {"{}",
                                          "[]",
                                          "{\"id\": \"j\"}",
                                          "{\"id\": 3, \"ranks\": []}",
                                          "{\"id\": \"\", \"ranks\": []}",
                                          "{\"id\": \"j\", \"ranks\": {}}"};
    static const char *const rows[] = {
        "3",
        "null",
        "[]",
        "{}",
        "{\"rank\": -1, \"host\": \"a\", \"epoch\": 1, \"pid\": 1, \"state\": \"running\"}",
        "{\"rank\": 0, \"epoch\": 1, \"pid\": 1, \"state\": \"running\"}",
        "{\"rank\": 0, \"host\": \"a\", \"pid\": 1, \"state\": \"running\"}",
        "{\"rank\": 0, \"host\": \"a\", \"epoch\": 1, \"state\": \"running\"}",
        "{\"rank\": 0, \"host\": \"a\", \"epoch\": 1, \"pid\": 0, \"state\": \"running\"}",
        "{\"rank\": 0, \"host\": \"a\", \"epoch\": 1, \"pid\": 1, \"state\": 3}",
        "{\"rank\": 99999999999, \"host\": \"a\", \"epoch\": 1, \"pid\": 1, \"state\": "
        "\"running\"}",
        "{\"rank\": 1, \"host\": \"a\", \"epoch\": 1, \"pid\": 4294967297, \"state\": \"running\"}",
        "{\"rank\": 4, \"host\": \"a\", \"epoch\": 1, \"pid\": 5, \"exit_code\": \"x\"}"};
    struct pmix_table table;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        assert_int_equal(read_text(&table, refused[i]), -1);
        process_table_clear(&table);
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *text AUTO_FREE = mem_printf("{\"id\": \"j\", \"ranks\": [%s]}", rows[i]);
        assert_int_equal(read_text(&table, text), 0);
        assert_int_equal(table.count, 0);
        process_table_clear(&table);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_no_row),
                                       cmocka_unit_test(test_nonsense)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
