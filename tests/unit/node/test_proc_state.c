/* SPDX-License-Identifier: Apache-2.0 */
/* What the report of --timeout says about a process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "node/proc_state.h"

static void expect_call(long number, const char *text)
{
    char *call AUTO_FREE = proc_state_call(number);
    assert_string_equal(call, text);
}

static void test_calls_have_names(void **state)
{
    (void)state;
    expect_call(SYS_futex, "calls futex");
    expect_call(SYS_kill, "calls kill");
    expect_call(SYS_sched_yield, "calls sched_yield");
    expect_call(SYS_newfstatat, "calls newfstatat");
    expect_call(9999, "is in system call number 9999");
}

static void test_own_process(void **state)
{
    (void)state;
    struct buf text AUTO_BUF = BUF_INIT(1 << 16);
    struct descendants_table *table = descendants_table_read(1000);
    assert_int_equal(proc_state_report(table, getpid(), 1, &text), 1);
    descendants_table_destroy(table);
    char *begin AUTO_FREE = mem_printf("  pid %d (", (int)getpid());
    assert_memory_equal(buf_text(&text), begin, strlen(begin));
    assert_non_null(strstr(buf_text(&text), "): running"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls_have_names),
        cmocka_unit_test(test_own_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
