/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "output/tail.h"

static void short_texts(void **state)
{
    (void)state;
    struct tail tail = {0};
    assert_string_equal(tail_text(&tail), "");
    tail_add(&tail, "\n", 1);
    assert_string_equal(tail_text(&tail), "");
    tail_add(&tail, "one\ntwo\r\n", 9);
    assert_string_equal(tail_text(&tail), "one\ntwo");
    tail_destroy(&tail);
}

static void the_last_lines(void **state)
{
    (void)state;
    struct tail tail = {0};
    char line[32];
    for (int i = 0; i < 1000; i++) {
        snprintf(line, sizeof(line), "line %d\n", i);
        tail_add(&tail, line, strlen(line));
    }
    const char *text = tail_text(&tail);
    assert_memory_equal(text, "line 980\n", 9);
    assert_string_equal(text + strlen(text) - 8, "line 999");
    tail_destroy(&tail);
}

static void long_lines_are_cut_in_front(void **state)
{
    (void)state;
    struct tail tail = {0};
    char large[10000];
    memset(large, 'x', sizeof(large));
    memcpy(large + sizeof(large) - 5, "end\n\n", 5);
    tail_add(&tail, large, sizeof(large));
    const char *text = tail_text(&tail);
    assert_true(strlen(text) <= TAIL_BYTES && strlen(text) > TAIL_BYTES - 10);
    assert_string_equal(text + strlen(text) - 4, "xend");
    for (int i = 0; i < 3000; i++)
        tail_add(&tail, i % 2 == 0 ? "\xc3" : "\xbc", 1);
    text = tail_text(&tail);
    assert_true(strlen(text) <= TAIL_BYTES);
    assert_null(strchr(text, '?')); /* not cut inside a character */
    tail_destroy(&tail);
}

static void always_valid_text(void **state)
{
    (void)state;
    struct tail tail = {0};
    tail_add(&tail, "a\0b \xff \xc3\xbc \xc0\x80 \xed\xa0\x80 \xe2\x82", 18);
    assert_string_equal(tail_text(&tail), "a?b ? \xc3\xbc ?? ??? ??");
    tail_destroy(&tail);
}

static void expect_tail(const char *said, const char *wanted)
{
    struct tail tail = {0};
    tail_add(&tail, said, strlen(said));
    assert_string_equal(tail_text(&tail), wanted);
    tail_destroy(&tail);
}

/* The first and the last character of each length and around what UTF-8 leaves out; then the bytes
 * next to them, which are not characters. */
static void the_edges_of_utf8(void **state)
{
    (void)state;
    static const char *const characters[] = {
        "\x7f",         "\xc2\x80",     "\xdf\xbf",         "\xe0\xa0\x80",     "\xe1\x80\x80",
        "\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbf",     "\xf0\x90\x80\x80", "\xf1\x80\x80\x80",
        "\xc3\x84",     "\xe2\x82\xac", "\xf4\x8f\xbf\xbf",
    };
    static const char *const others[] = {
        "\x80",         "\xc1\xbf",         "\xe0\x9f\xbf",     "\xed\xa0\x80",
        "\xed\xbf\xbf", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
    };
    for (size_t i = 0; i < sizeof(characters) / sizeof(characters[0]); i++)
        expect_tail(characters[i], characters[i]);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        expect_tail(others[i], "????" + 4 - strlen(others[i]));
    expect_tail("\xe2\x82-", "??"
                             "-");
    expect_tail("\xe2-\xac", "?-?");
}

/* Wherever a long line is cut, it begins with a whole character. */
static void never_cut_inside_a_character(void **state)
{
    (void)state;
    static const char *const units[] = {"\xc3\xbc", "\xe2\x82\xac", "\xf0\x9f\x9a\x80"};
    for (size_t unit = 0; unit < 3; unit++) {
        for (size_t behind = 0; behind < 4; behind++) {
            for (size_t slice = 1; slice <= 8192; slice *= 8) {
                struct tail tail = {0};
                char text[8192 + 1] = "";
                size_t size = strlen(units[unit]), length = 0;
                while (length + size + behind < sizeof(text)) {
                    memcpy(text + length, units[unit], size);
                    length += size;
                }
                memset(text + length, 'x', behind);
                text[length + behind] = '\0';
                length += behind;
                for (size_t at = 0; at < length; at += slice)
                    tail_add(&tail, text + at, length - at < slice ? length - at : slice);
                const char *got = tail_text(&tail);
                assert_null(strchr(got, '?'));
                assert_in_range(strlen(got), TAIL_BYTES - 3, TAIL_BYTES);
                assert_string_equal(got, text + length - strlen(got));
                tail_destroy(&tail);
            }
        }
    }
}

/* At no time is less remembered than there is room for. */
static void as_much_as_fits(void **state)
{
    (void)state;
    struct tail tail = {0};
    for (size_t total = 7; total < 20000; total += 7) {
        tail_add(&tail, "1234567", 7);
        assert_int_equal(strlen(tail_text(&tail)), total < TAIL_BYTES ? total : TAIL_BYTES);
    }
    tail_destroy(&tail);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_texts),
        cmocka_unit_test(the_last_lines),
        cmocka_unit_test(long_lines_are_cut_in_front),
        cmocka_unit_test(always_valid_text),
        cmocka_unit_test(the_edges_of_utf8),
        cmocka_unit_test(never_cut_inside_a_character),
        cmocka_unit_test(as_much_as_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
