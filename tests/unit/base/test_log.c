/* SPDX-License-Identifier: Apache-2.0 */
/* Messages: what is dropped, and that no text of another host reaches the terminal as it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"

static void keep(void *context, enum log_level level, const char *line)
{
    (void)level;
    snprintf(context, 256, "%s", line);
}

static void test_level(void **state)
{
    (void)state;
    char line[256] = "";
    struct log log = {LOG_NOTICE, keep, line};
    log_info(&log, "dropped");
    assert_string_equal(line, "");
    log_notice(&log, "%s %d", "kept", 1);
    assert_string_equal(line, "kept 1");
    log_print(NULL, LOG_ERROR, "nowhere");
}

static void test_control_characters(void **state)
{
    (void)state;
    static const struct {
        const char *text, *plain;
    } cases[] = {
        {"plain text", "plain text"},
        {"\033[31mred\033[0m", "?[31mred?[0m"},
        {"\033]0;title\a", "?]0;title?"},
        {"a\rb\bc\177", "a?b?c?"},
        {"two\nlines\tand a tab", "two\nlines\tand a tab"},
        {"gr\303\274n \342\202\254", "gr\303\274n \342\202\254"},
        {"\302\23331m", "??31m"}, /* CSI in one character */
        {"\302\240", "\302\240"}, /* a blank that does not break is text */
        {"\302", "\302"},
        {"", ""},
    };
    char line[256] = "";
    struct log log = {LOG_NOTICE, keep, line};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        log_notice(&log, "%s", cases[i].text);
        assert_string_equal(line, cases[i].plain);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_level),
        cmocka_unit_test(test_control_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
