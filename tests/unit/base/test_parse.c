/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/parse.h"

#define UNTOUCHED (-77)

/* The error names the value, is one line, and `*out` was left alone. */
#define REFUSED(call, value, part)                     \
    do {                                               \
        struct error err = ERROR_INIT;                 \
        assert_int_equal((call), -1);                  \
        assert_non_null(strstr(err.text, (part)));     \
        assert_null(strchr(err.text, '\n'));           \
        assert_int_equal((int64_t)(value), UNTOUCHED); \
    } while (0)

static void test_int(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t value;
    } good[] = {{"0", 0},
                {"-0", 0},
                {"+5", 5},
                {"007", 7},
                {"-12", -12},
                {"9223372036854775807", INT64_MAX},
                {"-9223372036854775808", INT64_MIN}};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        int64_t value = UNTOUCHED;
        assert_int_equal(parse_int(good[i].text, INT64_MIN, INT64_MAX, &value, NULL), 0);
        assert_int_equal(value, good[i].value);
    }
    static const char *const bad[] = {"", " ", " 5", "5 ", "5x", "x", "0x10", "1.0", "-", "--5"};
    int64_t value = UNTOUCHED;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        REFUSED(parse_int(bad[i], INT64_MIN, INT64_MAX, &value, &err), value, bad[i]);
    static const char *const outside[] = {"0", "11", "-1", "9223372036854775808",
                                          "99999999999999999999999999"};
    for (size_t i = 0; i < sizeof(outside) / sizeof(outside[0]); i++)
        REFUSED(parse_int(outside[i], 1, 10, &value, &err), value, "1 to 10");
    assert_int_equal(parse_int("1", 1, 10, &value, NULL), 0);
    assert_int_equal(parse_int("10", 1, 10, &value, NULL), 0);
    assert_int_equal(value, 10);
}

static void test_double(void **state)
{
    (void)state;
    double value = UNTOUCHED;
    static const char *const bad[] = {"", "x", "1x", " 1", "nan", "inf", "-inf", "1e999", "1,5"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        REFUSED(parse_double(bad[i], -1e9, 1e9, &value, &err), value, bad[i]);
    REFUSED(parse_double("1.01", 0, 1, &value, &err), value, "0 to 1");
    assert_int_equal(parse_double("0.25", 0, 1, &value, NULL), 0);
    assert_true(value == 0.25);
    assert_int_equal(parse_double("1", 0, 1, &value, NULL), 0);
    assert_true(value == 1);
}

static void test_bool(void **state)
{
    (void)state;
    static const char *const yes[] = {"1", "yes", "true", "on", "TRUE", "On"};
    static const char *const no[] = {"0", "no", "false", "off", "No", "FALSE"};
    for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
        bool value = false;
        assert_int_equal(parse_bool(yes[i], &value, NULL), 0);
        assert_true(value);
        assert_int_equal(parse_bool(no[i], &value, NULL), 0);
        assert_false(value);
    }
    static const char *const bad[] = {"", "2", "y", "yess", "true ", "offf"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct error err = ERROR_INIT;
        bool value = true;
        assert_int_equal(parse_bool(bad[i], &value, &err), -1);
        assert_true(value);
        assert_non_null(strstr(err.text, bad[i]));
    }
}

static void test_duration(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ms;
    } good[] = {{"0", 0},
                {"30", 30000},
                {"1.5", 1500},
                {"250ms", 250},
                {"30s", 30000},
                {".5s", 500},
                {"5m", 300000},
                {"2h", 7200000},
                {"1d", 86400000},
                {"0.0005s", 1},
                {"0.4ms", 0},
                {"1e3", 1000000},
                {"36500d", 36500LL * 86400 * 1000}};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        int64_t ms = UNTOUCHED;
        assert_int_equal(parse_duration_ms(good[i].text, &ms, NULL), 0);
        assert_int_equal(ms, good[i].ms);
    }
    static const char *const bad[] = {"",      "s",      "-1",   "+1",  " 1",   "1 s",
                                      "1.2.3", "5min",   "0x10", "inf", "nan",  "1S",
                                      "ms",    "1e999s", "1,5",  ".",   "0x1p3"};
    int64_t ms = UNTOUCHED;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        REFUSED(parse_duration_ms(bad[i], &ms, &err), ms, bad[i]);
    REFUSED(parse_duration_ms("40000d", &ms, &err), ms, "hundred years");
    REFUSED(parse_duration_ms("1e300", &ms, &err), ms, "hundred years");
}

static void collect(void *context, int64_t rank)
{
    buf_printf(context, " %lld", (long long)rank);
}

static void test_ranks(void **state)
{
    (void)state;
    static const struct {
        const char *text, *ranks;
    } good[] = {{"0", " 0"},     {"0,4-7,12", " 0 4 5 6 7 12"},
                {"7,3", " 7 3"}, {"5-5", " 5"},
                {"15", " 15"},   {"1,1", " 1 1"}};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        AUTO_BUF struct buf out = BUF_INIT(1000);
        assert_int_equal(parse_ranks(good[i].text, 15, collect, &out, NULL), 0);
        assert_string_equal(buf_text(&out), good[i].ranks);
        assert_int_equal(parse_ranks(good[i].text, 15, NULL, NULL, NULL), 0);
    }
    static const char *const bad[] = {"",
                                      ",",
                                      "1,",
                                      ",1",
                                      "1,,2",
                                      "1-",
                                      "-1",
                                      "1-a",
                                      "3-2",
                                      "16",
                                      "0-16",
                                      "a",
                                      "1 2",
                                      "1, 2",
                                      "1-2-3",
                                      "0-9223372036854775807",
                                      "99999999999999999999",
                                      "1-99999999999999999999",
                                      "+1",
                                      "1;2"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        AUTO_BUF struct buf out = BUF_INIT(1000);
        struct error err = ERROR_INIT;
        assert_int_equal(parse_ranks(bad[i], 15, collect, &out, &err), -1);
        assert_non_null(strstr(err.text, bad[i]));
        assert_true(out.length < 20); /* never beyond the range */
    }
}

static void test_names(void **state)
{
    (void)state;
    static const char *const good[] = {"a", "node-01.example.com", "fe80::1%eth0", "_x", "9", "."};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_true(name_is_safe(good[i], strlen(good[i])));
    static const char *const bad[] = {"",    "-oProxy=x", "a b", "a;b",         "$(x)", "a/b",
                                      "a@b", "a\n",       "a`",  "h\303\266st", "a=b",  "[::1]"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(name_is_safe(bad[i], strlen(bad[i])));
    assert_false(name_is_safe("a\0b", 3));
    assert_true(name_is_safe("ab;", 2)); /* the length counts, not the NUL */
    char long_name[257];
    memset(long_name, 'a', sizeof(long_name));
    assert_true(name_is_safe(long_name, 255));
    assert_false(name_is_safe(long_name, 256));
}

/* Every byte alone: exactly the listed ones are safe (a '-' only not in front). */
static void test_every_byte(void **state)
{
    (void)state;
    static const char listed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:%-";
    for (int c = 0; c < 256; c++) {
        char name[2] = {'a', (char)c};
        assert_int_equal(name_is_safe(name, 2), memchr(listed, c, sizeof(listed) - 1) != NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_int),        cmocka_unit_test(test_double),
        cmocka_unit_test(test_bool),       cmocka_unit_test(test_duration),
        cmocka_unit_test(test_ranks),      cmocka_unit_test(test_names),
        cmocka_unit_test(test_every_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
