/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/plain.h"

static void test_control_characters(void **state)
{
    (void)state;
    static const struct {
        const char *from, *text, *line;
    } cases[] = {
        {"plain text", "plain text", "plain text"},
        {"\033[31mred\033[0m", "?[31mred?[0m", " [31mred [0m"},
        {"\033]0;title\a", "?]0;title?", " ]0;title "},
        {"a\rb\bc\177", "a?b?c?", "a b c "},
        {"two\nlines\tand a tab", "two\nlines\tand a tab", "two lines and a tab"},
        {"gr\303\274n \342\202\254", "gr\303\274n \342\202\254", "gr\303\274n \342\202\254"},
        {"\302\23331m", "??31m", "  31m"},    /* CSI in one character */
        {"\302\240", "\302\240", "\302\240"}, /* a blank that does not break is text */
        {"\302", "\302", "\302"},
        {"", "", ""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[64];
        snprintf(text, sizeof(text), "%s", cases[i].from);
        plain_text(text);
        assert_string_equal(text, cases[i].text);
        snprintf(text, sizeof(text), "%s", cases[i].from);
        plain_line(text, ' ');
        assert_string_equal(text, cases[i].line);
    }
}

static void test_characters(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t length;
    } cases[] = {
        {"a", 1},        {"\303\274x", 2},        {"\342\202\254", 3}, {"\360\237\230\200", 4},
        {"\342\202", 0}, {"\300\200", 0},         {"\340\200\200", 0}, {"\355\240\200", 0},
        {"\200", 0},     {"\364\220\200\200", 0}, {"\377", 0},         {"", 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(plain_character(cases[i].text, strlen(cases[i].text)), cases[i].length);
    assert_int_equal(plain_cut("a\342\202\254b", 4), 4);
    assert_int_equal(plain_cut("a\342\202\254b", 3), 1);
    assert_int_equal(plain_cut("\202\202\202", 2), 0);
}

static void test_bytes_that_are_no_text(void **state)
{
    (void)state;
    char text[] = "a\302\265\265\0b\342\202";
    plain_valid(text, sizeof(text) - 1);
    assert_string_equal(text, "a\302\265??b??");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_control_characters),
                                       cmocka_unit_test(test_characters),
                                       cmocka_unit_test(test_bytes_that_are_no_text)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
