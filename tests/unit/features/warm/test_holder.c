/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "features/warm/holder.h"
#include "features/warm/inherited_cli.h"
#include "features/warm/warm_agent.h"

/* Jobs that take turns: the one that was used last is the last one that is ended. */
static void test_order(void **state)
{
    static const int64_t used_ms[] = {30, 10, 20, 30};
    static const pid_t expected[] = {2, 3, 1, 4};
    struct warm_holder holder = {0};
    (void)state;
    for (pid_t pid = 1; pid <= 4; pid++) {
        struct warm_kept kept = {.pid = pid, .socket = -1, .used_ms = used_ms[pid - 1]};
        warm_holder_add(&holder, &kept);
    }
    for (size_t i = 0; i < holder.count; i++)
        assert_int_equal(holder.list[i].pid, expected[i]);
    warm_holder_clear(&holder);
}

static void test_memory(void **state)
{
    (void)state;
    assert_true(warm_bytes(getpid()) > 0);
    assert_int_equal(warm_bytes(0x7fffffff), 0);
}

static void differ(const char *one, const char *other, const char *expected)
{
    char *found AUTO_FREE = inherited_difference(one, other);
    if (expected == NULL)
        assert_null(found);
    else
        assert_string_equal(found, expected);
}

static void test_what_differs(void **state)
{
    (void)state;
    differ("", "", NULL);
    differ("a: 1\nb: 2\n", "a: 1\nb: 2\n", NULL);
    differ("a: 1\nb: 2\n", "a: 1\nb: 23\n", "b");
    differ("a: 1\nb: 2\n", "a: 0\nb: 3\n", "a");
    differ("a: 1\n", "", "a"); /* the holder has written nothing */
    differ("a: 1\n", "a: 1\nb: 2\n", "b");
    differ("a: 1\nb: 2\n", "a: 1\n", "b");
}

static void test_what_is_inherited(void **state)
{
    AUTO_BUF struct buf one = BUF_INIT(1 << 20), other = BUF_INIT(1 << 20);
    (void)state;
    inherited_read("/no/such/agent", &one);
    inherited_read("/no/such/agent", &other);
    differ(buf_text(&one), buf_text(&other), NULL);
    assert_non_null(strstr(buf_text(&one), "the limits (ulimit):"));
    mode_t mask = umask(0123);
    buf_clear(&other);
    inherited_read("/no/such/agent", &other);
    umask(mask);
    differ(buf_text(&one), buf_text(&other), "the umask");
    buf_clear(&other);
    inherited_read("/", &other);
    differ(buf_text(&one), buf_text(&other), "this hvdrun");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_order), cmocka_unit_test(test_memory),
                                       cmocka_unit_test(test_what_differs),
                                       cmocka_unit_test(test_what_is_inherited)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
