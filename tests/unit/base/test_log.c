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

/* tests/unit/base/test_plain.c has them all */
static void test_control_characters(void **state)
{
    (void)state;
    char line[256] = "";
    struct log log = {LOG_NOTICE, keep, line};
    log_notice(&log, "%s", "\033[31mred\033[0m\n");
    assert_string_equal(line, "?[31mred?[0m\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_level),
        cmocka_unit_test(test_control_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
