/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "features/debug/session_program_agent.h"

static void check(const char *with, pid_t pid, bool is_stopped, const char *expected)
{
    struct strv words AUTO_STRV = STRV_INIT;
    struct buf line AUTO_BUF = BUF_INIT(10000);
    debug_line(with, pid, is_stopped, &words);
    for (size_t i = 0; i < words.count; i++)
        buf_printf(&line, "%s[%s]", i > 0 ? " " : "", words.items[i]);
    assert_string_equal(buf_text(&line), expected);
}

static void test_known_debuggers(void **state)
{
    (void)state;
    check("gdb", 123, false, "[gdb] [-q] [-iex] [set confirm off] [-p] [123]");
    check("lldb", 123, false, "[lldb] [-p] [123]");
    check("lldb", 123, true, "[lldb] [-p] [123]");
    check("gdb", 123, true,
          "[gdb] [-q] [-iex] [set confirm off] [-iex] [handle SIGSTOP nostop noprint nopass] [-p] "
          "[123]");
}

static void test_commands(void **state)
{
    (void)state;
    check("strace -f -p {pid}", 7, false, "[/bin/sh] [-c] [strace -f -p 7]");
    check("{pid}{pid} %p %% {pi} {", 7, false, "[/bin/sh] [-c] [77 %p %% {pi} {]");
    check("true", 7, true, "[/bin/sh] [-c] [true]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_debuggers),
        cmocka_unit_test(test_commands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
