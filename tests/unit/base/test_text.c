/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"

static void expect(void (*trim)(const char **, size_t *), const char *text, const char *left)
{
    size_t length = strlen(text);
    trim(&text, &length);
    assert_int_equal(length, strlen(left));
    assert_memory_equal(text, left, length);
}

static void test_trim(void **state)
{
    (void)state;
    expect(text_trim, "", "");
    expect(text_trim, " \t\r\n", "");
    expect(text_trim, "a", "a");
    expect(text_trim, "\t a b\r\n", "a b");
    expect(text_trim, " a # b ", "a # b");
}

static void test_comment(void **state)
{
    (void)state;
    expect(text_trim_comment, "", "");
    expect(text_trim_comment, "# a", "");
    expect(text_trim_comment, " a b # c # d", "a b");
    expect(text_trim_comment, "a#b", "a");
    expect(text_trim_comment, " a ", "a");
}

static void test_line_after(void **state)
{
    (void)state;
    static const char text[] = "\n\noom_kill_disable 0\nunder oom_kill 3\noom_kill 7\noom_kill 9";
    assert_string_equal(text_line_after(text, "oom_kill "), "7\noom_kill 9");
    assert_string_equal(text_line_after(text, "oom_kill_"), strstr(text, "disable"));
    assert_string_equal(text_line_after("a b", "a "), "b");
    assert_string_equal(text_line_after(text + 2, "oom_kill_"), strstr(text, "disable"));
    assert_string_equal(text_line_after(strstr(text, "_disable"), "_dis"), strstr(text, "able 0"));
    assert_null(text_line_after(text, "oom_kill 8"));
    assert_null(text_line_after("", "a"));
}

static void test_reads_no_further(void **state)
{
    (void)state;
    const char *text = "  # a";
    size_t length = 2; /* the comment is not part of it */
    text_trim_comment(&text, &length);
    assert_int_equal(length, 0);
}

static void test_words(void **state)
{
    (void)state;
    assert_string_equal(text_behind("a b c", ' '), "b c");
    assert_string_equal(text_behind("a,", ','), "");
    assert_string_equal(text_behind("a", ','), "");
    assert_true(text_lists("a bc d", "a", 1));
    assert_true(text_lists("a bc d", "bcx", 2));
    assert_true(text_lists("a bc d", "d", 1));
    assert_false(text_lists("a bc d", "b", 1));
    assert_false(text_lists("a bc d", "bc d", 4));
    assert_false(text_lists("a", "ab", 2));
    assert_false(text_lists("", "", 0));
}

static void test_words_of_a_line(void **state)
{
    static const char line[] = " a=b c\0d=e \n";
    struct text_rest rest = text_rest_of(line, sizeof(line) - 1), same = rest;
    const char *word = NULL;
    (void)state;
    assert_int_equal(text_take_word(&rest, '=', &word), 1);
    assert_memory_equal(word, "a", 1);
    assert_int_equal(text_take_word(&rest, '=', &word), 0);
    assert_true(text_take_byte(&rest, '='));
    assert_false(text_take_byte(&rest, '='));
    assert_int_equal(text_take_word(&rest, '=', &word), 1);
    assert_int_equal(text_take_word(&rest, '=', &word), 3); /* NUL is a byte as any other */
    assert_memory_equal(word, "c\0d", 3);
    assert_string_equal(rest.at, "=e \n");
    assert_int_equal(rest.end - rest.at, 2); /* without the blanks at the end */
    assert_int_equal(text_take_word(&same, ' ', &word), 3);
    assert_int_equal(text_take_word(&same, ' ', &word), 5);
    assert_memory_equal(word, "c\0d=e", 5);
    assert_int_equal(text_take_word(&same, ' ', &word), 0);
    assert_true(same.at == same.end);
}

static void test_hex(void **state)
{
    (void)state;
    char digits[] = "........";
    text_hex((const uint8_t[]){0x00, 0x9a, 0xff}, 3, digits);
    assert_string_equal(digits, "009aff");
    text_hex(NULL, 0, digits);
    assert_string_equal(digits, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trim),       cmocka_unit_test(test_comment),
        cmocka_unit_test(test_line_after), cmocka_unit_test(test_reads_no_further),
        cmocka_unit_test(test_words),      cmocka_unit_test(test_words_of_a_line),
        cmocka_unit_test(test_hex),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
