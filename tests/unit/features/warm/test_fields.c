/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "features/warm/holder.h"

static void test_there_and_back(void **state)
{
    AUTO_BUF struct buf bytes = BUF_INIT(1000);
    AUTO_STRV struct strv list = STRV_INIT, copy = STRV_INIT;
    (void)state;
    strv_add(&list, "");
    strv_add(&list, "b c");
    fields_put(&bytes, "one");
    fields_put_number(&bytes, 1234567890123);
    fields_put_list(&bytes, &list);
    fields_put(&bytes, "");
    struct field_reader fields = {buf_text(&bytes), buf_text(&bytes) + bytes.length};
    assert_string_equal(fields_next(&fields), "one");
    assert_int_equal(fields_next_number(&fields), 1234567890123);
    fields_next_list(&fields, &copy);
    assert_int_equal(copy.count, 2);
    assert_string_equal(copy.items[1], "b c");
    assert_true(fields.at < fields.end);
    assert_string_equal(fields_next(&fields), "");
    assert_ptr_equal(fields.at, fields.end);
}

static void test_what_is_missing(void **state)
{
    static const char bytes[] = "x\0"
                                "99\0"
                                "a\0"
                                "open";
    AUTO_STRV struct strv list = STRV_INIT;
    (void)state;
    struct field_reader fields = {bytes, bytes + sizeof(bytes) - 1};
    assert_int_equal(fields_next_number(&fields), -1);
    fields_next_list(&fields, &list);
    assert_int_equal(list.count, 2); /* "a", and "" for the one without an end */
    assert_string_equal(list.items[1], "");
    assert_string_equal(fields_next(&fields), "");
    assert_int_equal(fields_next_number(&fields), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_there_and_back),
                                       cmocka_unit_test(test_what_is_missing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
