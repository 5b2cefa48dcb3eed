/* SPDX-License-Identifier: Apache-2.0 */
/* JSON in one line: what jansson reads again is what was written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "driver/tell/json_compact.h"

/* `value` is consumed. */
static void expect(json_t *value, const char *wanted)
{
    struct buf text AUTO_BUF = BUF_INIT(1 << 20);
    assert_non_null(value);
    assert_int_equal(json_compact(value, &text), 0);
    assert_string_equal(buf_text(&text), wanted);
    json_t *again =
        json_loadb(buf_text(&text), text.length, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    assert_true(json_equal(value, again));
    json_decref(again);
    json_decref(value);
}

static void test_values(void **state)
{
    (void)state;
    expect(json_null(), "null");
    expect(json_pack("[b,b,[],{}]", 1, 0), "[true,false,[],{}]");
    expect(json_pack("{s:i,s:[i,i]}", "a", 1, "b", -2, 3), "{\"a\":1,\"b\":[-2,3]}");
    expect(json_integer(INT64_MAX), "9223372036854775807");
    expect(json_integer(INT64_MIN), "-9223372036854775808");
}

static void test_numbers(void **state)
{
    (void)state;
    expect(json_real(0), "0.0");
    expect(json_real(1), "1.0");
    expect(json_real(-0.5), "-0.5");
    expect(json_real(0.000001), "0.000001");
    expect(json_real(1795407683.123456), "1795407683.123456");
    expect(json_real(100.05), "100.05");
    expect(json_real(1e20), "1e+20");
    expect(json_real(9007199254740992.0), "9007199254740992.0");
    expect(json_real(0.1 + 0.2), "0.30000000000000004");
    expect(json_real(-1e-9), "-1.0000000000000001e-09");
}

static void test_texts(void **state)
{
    (void)state;
    expect(json_string(""), "\"\"");
    expect(json_string("a \"b\" \\c/\n\t\r\b\f\x01\x7f"),
           "\"a \\\"b\\\" \\\\c/\\n\\t\\r\\b\\f\\u0001\x7f\"");
    expect(json_string("\xc3\xa9 \xf0\x9f\x98\x80"), "\"\xc3\xa9 \xf0\x9f\x98\x80\"");
    expect(json_stringn("a\0b", 3), "\"a\\u0000b\"");
    expect(json_pack("{s:n}", "k\"\n"), "{\"k\\\"\\n\":null}");
}

/* Every microsecond of a time is the same after it was written and read. */
static void test_times(void **state)
{
    (void)state;
    uint64_t random = 1;
    for (int i = 0; i < 200000; i++) {
        struct buf text AUTO_BUF = BUF_INIT(64);
        random = random * 6364136223846793005 + 1442695040888963407;
        double number = (double)(random >> (11 + i % 40)) / 1e6;
        json_t *value = json_real(i % 2 == 0 ? number : -number);
        assert_int_equal(json_compact(value, &text), 0);
        assert_true(strtod(buf_text(&text), NULL) == json_real_value(value));
        assert_non_null(strpbrk(buf_text(&text), ".e"));
        json_decref(value);
    }
}

static void test_no_room(void **state)
{
    (void)state;
    struct buf text AUTO_BUF = BUF_INIT(10);
    json_t *value = json_pack("[s,i]", "abcdefgh", 1);
    buf_puts(&text, "ab");
    assert_int_equal(json_compact(value, &text), -1);
    assert_string_equal(buf_text(&text), "ab");
    json_decref(value);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values), cmocka_unit_test(test_numbers), cmocka_unit_test(test_texts),
        cmocka_unit_test(test_times),  cmocka_unit_test(test_no_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
