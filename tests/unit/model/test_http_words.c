/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/net/http_words.h"

static void expect(const char *query, const char *value)
{
    struct http_word word = {NULL, 0};
    bool found = http_query_find(query, "token", &word);
    assert_int_equal(found, value != NULL);
    if (value == NULL)
        return;
    assert_int_equal(word.length, strlen(value));
    assert_memory_equal(word.text, value, word.length);
}

static void test_query(void **state)
{
    (void)state;
    expect("token=abc", "abc");
    expect("rank=1&token=abc&x=2", "abc");
    expect("token=&x", "");
    expect("token=a=b", "a=b");
    expect("token=one&token=two", "one");
    expect("&&token=x", "x");
    expect("tokens=abc", NULL);
    expect("xtoken=abc", NULL);
    expect("token", NULL);
    expect("", NULL);
    expect(NULL, NULL);
}

static int number(const char *text, int most)
{
    int out = -1;
    struct http_word word = {text, strlen(text)};
    return http_word_number(&word, most, &out) ? out : -1;
}

static void test_number(void **state)
{
    (void)state;
    assert_int_equal(number("0", 7), 0);
    assert_int_equal(number("7", 7), 7);
    assert_int_equal(number("8", 7), -1);
    assert_int_equal(number("", 7), -1);
    assert_int_equal(number("-1", 7), -1);
    assert_int_equal(number("+1", 7), -1);
    assert_int_equal(number("1k", 7), -1);
    assert_int_equal(number("0000000001", 7), 1);
    assert_int_equal(number("00000000001", 7), -1);
    assert_int_equal(number("9999999999", 2147483647), -1);
}

static void test_secret(void **state)
{
    (void)state;
    static const char text[] = "0123abcd";
    for (size_t length = 0; length <= sizeof(text) - 1; length++) {
        struct http_word word = {text, length};
        assert_int_equal(http_word_is_secret(&word, "0123abcd"), length == 8);
        assert_false(http_word_is_secret(&word, "0123abce"));
    }
}

static void test_host(void **state)
{
    (void)state;
    static const char *const good[] = {"localhost",   "LOCALHOST:9400", "127.0.0.1",
                                       "10.0.0.5:80", "[::1]",          "[::1]:9400"};
    static const char *const bad[] = {"",           "evil.example",      "evil.example:9400",
                                      "localhost.", "127.0.0.1.x",       "127.0.0.1:80x",
                                      "[::1",       "[localhost]",       "[::1]x",
                                      "::1",        "localhost:80:80",   "localhost\t",
                                      "127.1",      "127.0.0.1@evil.com"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_true(http_host_is_address(good[i]));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(http_host_is_address(bad[i]));
    char long_name[500];
    memset(long_name, '1', sizeof(long_name) - 1);
    long_name[sizeof(long_name) - 1] = '\0';
    assert_false(http_host_is_address(long_name));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_query),
        cmocka_unit_test(test_number),
        cmocka_unit_test(test_secret),
        cmocka_unit_test(test_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
