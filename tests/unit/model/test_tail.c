/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "model/exit/tail.h"

static void short_texts(void **state)
{
    (void)state;
    struct tail tail = {0};
    assert_string_equal(tail_text(&tail), "");
    tail_add(&tail, "\n", 1, 0);
    assert_string_equal(tail_text(&tail), "");
    tail_add(&tail, "one\ntwo\r\n", 9, 0);
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
        tail_add(&tail, line, strlen(line), 0);
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
    tail_add(&tail, large, sizeof(large), 0);
    const char *text = tail_text(&tail);
    assert_true(strlen(text) <= TAIL_BYTES && strlen(text) > TAIL_BYTES - 10);
    assert_string_equal(text + strlen(text) - 4, "xend");
    for (int i = 0; i < 3000; i++)
        tail_add(&tail, i % 2 == 0 ? "\xc3" : "\xbc", 1, 0);
    text = tail_text(&tail);
    assert_true(strlen(text) <= TAIL_BYTES);
    assert_null(strchr(text, '?')); /* not cut inside a character */
    tail_destroy(&tail);
}

static void always_valid_text(void **state)
{
    (void)state;
    struct tail tail = {0};
    tail_add(&tail, "a\0b \xff \xc3\xbc \xc0\x80 \xed\xa0\x80 \xe2\x82", 18, 0);
    assert_string_equal(tail_text(&tail), "a?b ? \xc3\xbc ?? ??? ??");
    tail_destroy(&tail);
}

static void expect_tail(const char *said, const char *wanted)
{
    struct tail tail = {0};
    tail_add(&tail, said, strlen(said), 0);
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
                    tail_add(&tail, text + at, length - at < slice ? length - at : slice, 0);
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
        tail_add(&tail, "1234567", 7, 0);
        assert_int_equal(strlen(tail_text(&tail)), total < TAIL_BYTES ? total : TAIL_BYTES);
    }
    tail_destroy(&tail);
}

#define MS INT64_C(1000000)

static void expect_line(struct tail_walk *walk, const char *text, int64_t when_ns)
{
    struct tail_line line;
    assert_true(tail_walk_next(walk, &line));
    assert_int_equal(line.when_ns, when_ns);
    assert_int_equal(line.elsewhere, text == NULL);
    if (text == NULL)
        return;
    assert_int_equal(line.length, strlen(text));
    assert_memory_equal(line.text, text, line.length);
}

static void expect_end(struct tail_walk *walk)
{
    struct tail_line line;
    assert_false(tail_walk_next(walk, &line));
    tail_walk_end(walk);
}

/* A line has the time of its first byte, however its bytes came. */
static void lines_with_their_times(void **state)
{
    (void)state;
    struct tail tail = {0};
    struct tail_walk walk;
    tail_walk_begin(&walk, &tail);
    expect_end(&walk);
    tail_add(&tail, "one\ntw", 6, 10 * MS);
    tail_add(&tail, "o\r\n", 3, 20 * MS);
    tail_add(&tail, "three\n", 6, 20 * MS + 1); /* as good as the same time */
    tail_add(&tail, "four", 4, 30 * MS);
    tail_walk_begin(&walk, &tail);
    expect_line(&walk, "one", 10 * MS);
    expect_line(&walk, "two", 10 * MS);
    expect_line(&walk, "", 20 * MS);
    expect_line(&walk, "three", 20 * MS);
    expect_line(&walk, "four", 30 * MS);
    expect_end(&walk);
    tail_destroy(&tail);
}

/* The other stream counts once, after a silence of this one. */
static void words_elsewhere(void **state)
{
    (void)state;
    struct tail tail = {0};
    tail_elsewhere(&tail, 1); /* nothing said yet */
    tail_add(&tail, "one\n", 4, 10 * MS);
    tail_elsewhere(&tail, 10 * MS + TAIL_SILENCE_NS - 1);
    tail_elsewhere(&tail, 10 * MS + TAIL_SILENCE_NS);
    tail_elsewhere(&tail, 30 * MS + TAIL_SILENCE_NS * 3);
    tail_add(&tail, "two", 3, TAIL_SILENCE_NS * 4);
    tail_elsewhere(&tail, TAIL_SILENCE_NS * 6);
    struct tail_walk walk;
    tail_walk_begin(&walk, &tail);
    expect_line(&walk, "one", 10 * MS);
    expect_line(&walk, NULL, 10 * MS + TAIL_SILENCE_NS);
    expect_line(&walk, "two", TAIL_SILENCE_NS * 4);
    expect_line(&walk, NULL, TAIL_SILENCE_NS * 6);
    expect_end(&walk);
    tail_destroy(&tail);
}

/* Bytes whose mark is gone have the time of the oldest mark: never too early. */
static void forgotten_times(void **state)
{
    (void)state;
    struct tail tail = {0};
    struct tail_walk walk;
    for (int i = 0; i < TAIL_MARKS + 5; i++)
        tail_add(&tail, "x\n", 2, i * 10 * MS);
    tail_walk_begin(&walk, &tail);
    for (int i = 0; i < TAIL_MARKS + 5; i++)
        expect_line(&walk, "x", (i < 5 ? 5 : i) * 10 * MS);
    expect_end(&walk);
    char large[TAIL_KEPT];
    memset(large, 'y', sizeof(large));
    large[100] = '\n';
    tail_add(&tail, large, sizeof(large), 1000 * MS);
    tail_add(&tail, large, sizeof(large), 2000 * MS);
    tail_walk_begin(&walk, &tail);
    struct tail_line line;
    int64_t last = 0;
    while (tail_walk_next(&walk, &line)) {
        assert_true(line.when_ns >= last);
        last = line.when_ns;
    }
    tail_walk_end(&walk);
    assert_int_equal(last, 2000 * MS);
    tail_destroy(&tail);
}

/* However the bytes come, the last TAIL_KEPT are there. */
static void as_many_bytes_as_kept(void **state)
{
    (void)state;
    static const size_t parts[] = {1, 7, 511, 512, 4096, 5000, TAIL_KEPT - 1, TAIL_KEPT, 20000};
    static char text[100000];
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (char)('a' + i % 23);
    for (size_t p = 0; p < sizeof(parts) / sizeof(parts[0]); p++) {
        struct tail tail = {0};
        for (size_t at = 0; at + parts[p] <= sizeof(text); at += parts[p]) {
            size_t total = at + parts[p], kept = total < TAIL_KEPT ? total : TAIL_KEPT;
            struct tail_walk walk;
            tail_add(&tail, text + at, parts[p], 0);
            if (parts[p] < 500 && at % 491 != 0)
                continue;
            tail_walk_begin(&walk, &tail);
            assert_int_equal(walk.length, kept);
            assert_memory_equal(walk.bytes, text + total - kept, kept);
            assert_int_equal(walk.cut, total > kept);
            tail_walk_end(&walk);
        }
        tail_destroy(&tail);
    }
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
        cmocka_unit_test(lines_with_their_times),
        cmocka_unit_test(words_elsewhere),
        cmocka_unit_test(forgotten_times),
        cmocka_unit_test(as_many_bytes_as_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
