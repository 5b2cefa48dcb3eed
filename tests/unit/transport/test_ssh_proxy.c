/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines of proxies and of the ssh program; lines of a stranger's stderr. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "io/helpers.h"
#include "transport/ssh/parts.h"

static void assert_words(const struct strv *words, const char *expected)
{
    struct buf text AUTO_BUF = BUF_INIT(65536);
    for (size_t i = 0; i < words->count; i++)
        buf_printf(&text, "[%s]", words->items[i]);
    assert_string_equal(buf_text(&text), expected);
}

static void check(const char *jump, const char *command, const char *file, const char *expected)
{
    struct ssh_config config = {.host_name = (char *)"inner",
                                .user = (char *)"me",
                                .port = 2222,
                                .proxy_jump = (char *)jump,
                                .proxy_command = (char *)command};
    struct strv argv AUTO_STRV = STRV_INIT;
    struct error err = ERROR_INIT;
    int rc = ssh_proxy_argv(&config, "asked", file, &argv, &err);
    assert_int_equal(rc, expected == NULL ? -1 : 0);
    if (expected != NULL)
        assert_words(&argv, expected);
    else
        assert_true(err.text[0] != '\0');
}

static void test_jump(void **state)
{
    (void)state;
    check("gate", NULL, NULL,
          "[ssh][-oBatchMode=yes][-oClearAllForwardings=yes][-W][[inner]:2222][--][gate]");
    check("u@gate:2200", NULL, "/c",
          "[ssh][-F][/c][-oBatchMode=yes][-oClearAllForwardings=yes][-W][[inner]:2222][--]"
          "[ssh://u@gate:2200]");
    check("a,u@b:1,c", NULL, NULL,
          "[ssh][-oBatchMode=yes][-oClearAllForwardings=yes][-J][a,u@b:1][-W][[inner]:2222][--]"
          "[c]");
    check("-oProxyCommand=x", NULL, NULL, NULL);
    check("a,-x", NULL, NULL, NULL);
    check("a,", NULL, NULL, NULL);
}

static void test_command(void **state)
{
    (void)state;
    check(NULL, "nc -x %% %h %p %r %n", NULL, "[/bin/sh][-c][exec nc -x % inner 2222 me asked]");
    check(NULL, "nc %C", NULL, NULL);
    check(NULL, "nc %", NULL, NULL);
}

static void test_unsafe_names(void **state)
{
    (void)state;
    struct ssh_config config = {.host_name = (char *)"a;reboot",
                                .user = (char *)"me",
                                .port = 22,
                                .proxy_command = (char *)"nc %h"};
    struct strv argv AUTO_STRV = STRV_INIT;
    struct error err = ERROR_INIT;
    assert_int_equal(ssh_proxy_argv(&config, "asked", NULL, &argv, &err), -1);
}

static void test_program(void **state)
{
    (void)state;
    struct strv words AUTO_STRV = STRV_INIT;
    const struct ssh_program program = {.config_file = "/a%b",
                                        .identity = "/id",
                                        .user = "m%he",
                                        .port = 2222,
                                        .check = "yes",
                                        .silence_ms = 31000};
    struct error err = ERROR_INIT;
    assert_int_equal(ssh_program_words(&program, &words, &err), 0);
    struct strv head AUTO_STRV = STRV_INIT;
    for (size_t i = 0; i < 12 && i < words.count; i++)
        strv_add(&head, words.items[i]);
    assert_words(&head, "[ssh][-oClearAllForwardings=yes][-oRemoteCommand=none][-oControlPath=none]"
                        "[-F][/a%%b][-i][/id][-l][m%%he][-p2222]"
                        "[-oStrictHostKeyChecking=yes]");
    assert_string_equal(words.items[12], "-oServerAliveCountMax=7");
    assert_string_equal(words.items[words.count - 1], "-oStrictHostKeyChecking=accept-new");
}

static void count_line(void *context, const char *line)
{
    int *count = context;
    (*count)++;
    assert_true(strlen(line) > 0 && strlen(line) <= STDERR_LINE_MAX);
}

static void test_lines(void **state)
{
    (void)state;
    struct stderr_lines lines = {.told = 0};
    int count = 0;
    stderr_lines_feed(&lines, "a\x1b[31mb\r\n\n  \nhal", 16, count_line, &count);
    assert_int_equal(count, 1);
    assert_string_equal(lines.last, "a[31mb");
    stderr_lines_feed(&lines, "f", 1, count_line, &count);
    stderr_lines_end(&lines, count_line, &count);
    assert_int_equal(count, 2);
    assert_string_equal(lines.last, "half");
    for (int i = 0; i < 100000; i++)
        stderr_lines_feed(&lines, "x", 1, count_line, &count);
    for (int i = 0; i < 200; i++)
        stderr_lines_feed(&lines, "y\n", 2, count_line, &count);
    assert_int_equal(count, STDERR_LINES_MAX);
    assert_string_equal(lines.last, "y");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_jump),         cmocka_unit_test(test_command),
        cmocka_unit_test(test_unsafe_names), cmocka_unit_test(test_program),
        cmocka_unit_test(test_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
