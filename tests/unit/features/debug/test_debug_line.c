/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "features/debug/debug_line.h"

static void check(const char *with, const struct debug_target *target, const char *expected)
{
    struct strv words AUTO_STRV = STRV_INIT;
    struct buf line AUTO_BUF = BUF_INIT(10000);
    debug_line(with, target, &words);
    for (size_t i = 0; i < words.count; i++)
        buf_printf(&line, "%s[%s]", i > 0 ? " " : "", words.items[i]);
    assert_string_equal(buf_text(&line), expected);
}

static void test_known_debuggers(void **state)
{
    struct debug_target target = {.pid = 123, .program = "/opt/py thon"};
    (void)state;
    check("gdb", &target, "[gdb] [-q] [-iex] [set confirm off] [-p] [123]");
    check("lldb", &target, "[lldb] [-p] [123]");
    target.has_script = true;
    check("gdb", &target,
          "[gdb] [-q] [-iex] [set confirm off] [-iex] [add-auto-load-safe-path "
          "/opt/py thon-gdb.py] [-p] [123]");
    check("lldb", &target, "[lldb] [-p] [123]");
    target.has_script = false;
    target.is_stopped = true;
    check("gdb", &target,
          "[gdb] [-q] [-iex] [set confirm off] [-iex] [handle SIGSTOP nostop noprint nopass] [-p] "
          "[123]");
}

static void test_commands(void **state)
{
    const struct debug_target target = {.pid = 7, .program = ""};
    (void)state;
    check("strace -f -p {pid}", &target, "[/bin/sh] [-c] [strace -f -p 7]");
    check("%p{pid}%p %% {pi} {", &target, "[/bin/sh] [-c] [777 %% {pi} {]");
    check("gdb -p %p", &target, "[/bin/sh] [-c] [gdb -p 7]");
    check("true", &target, "[/bin/sh] [-c] [true]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_debuggers),
        cmocka_unit_test(test_commands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
