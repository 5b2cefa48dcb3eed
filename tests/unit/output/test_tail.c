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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_texts),
        cmocka_unit_test(the_last_lines),
        cmocka_unit_test(long_lines_are_cut_in_front),
        cmocka_unit_test(always_valid_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
