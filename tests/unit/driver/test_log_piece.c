/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "driver/tell/line_log.h"
#include "driver/tell/recent.h"

static void expect_head(struct log_head head, const char *wanted)
{
    struct buf text AUTO_BUF = BUF_INIT(1000);
    struct log_head again;
    log_head_append(&head, &text);
    assert_string_equal(buf_text(&text), wanted);
    assert_true(log_head_parse(buf_text(&text), text.length - 1, &again));
    assert_int_equal(again.wall_ms, head.wall_ms);
    assert_int_equal(again.rank, head.rank);
    assert_int_equal(again.is_stderr, head.is_stderr);
    assert_int_equal(again.goes_on, head.goes_on);
    assert_int_equal(again.length, head.length);
}

static void test_heads(void **state)
{
    (void)state;
    expect_head((struct log_head){.wall_ms = 1700000000123, .rank = 12, .length = 7},
                "1700000000123 12 o 7\n");
    expect_head((struct log_head){.is_stderr = true, .length = LOG_PIECE_MAX}, "0 0 e 16777216\n");
    expect_head((struct log_head){.wall_ms = 5, .rank = INT32_MAX, .goes_on = true},
                "5 2147483647 O 0\n");
    expect_head((struct log_head){.rank = RECENT_LAUNCHER, .is_stderr = true, .goes_on = true},
                "0 - E 0\n");
    expect_head((struct log_head){.wall_ms = INT64_MAX / 100}, "92233720368547758 0 o 0\n");
}

/* A log may be damaged, or be another file. */
static void test_what_is_not_a_head(void **state)
{
    static const char *const texts[] = {"",
                                        "5",
                                        "5 ",
                                        "5 0",
                                        "5 0 ",
                                        "5 0 o",
                                        "5 0 o ",
                                        "5 0 o 7 ",
                                        "5 0 o 7\n",
                                        "5 0 x 7",
                                        "5 0 oo 7",
                                        "5 0o 7",
                                        "5  0 o 7",
                                        "5 -1 o 7",
                                        "5 -- o 7",
                                        "5- 0 o 7",
                                        "-5 0 o 7",
                                        "- 0 o 7",
                                        "x 0 o 7",
                                        " 0 o 7",
                                        "5 x o 7",
                                        "5 0 o x",
                                        "5 0 o -7",
                                        "5 2147483648 o 7",
                                        "5 0 o 16777217",
                                        "92233720368547759 0 o 7",
                                        "99999999999999999999999999 0 o 7"};
    struct log_head head;
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (log_head_parse(texts[i], strlen(texts[i]), &head))
            fail_msg("'%s' is taken", texts[i]);
    }
    assert_false(log_head_parse("5 0 \0 7", 7, &head));
}

/* The bytes behind a head are none of its. */
static void test_a_head_has_an_end(void **state)
{
    struct log_head head;
    (void)state;
    assert_true(log_head_parse("5 0 o 71", 7, &head));
    assert_int_equal(head.length, 7);
    assert_false(log_head_parse("5 0 o 71", 6, &head));
    assert_false(log_head_parse("5 0 o 71", 4, &head));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_heads),
        cmocka_unit_test(test_what_is_not_a_head),
        cmocka_unit_test(test_a_head_has_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
