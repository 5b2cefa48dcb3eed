/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "elastic/place_test.h"
#include "unit.h"

#define SECOND 1000000000

static void test_lines(void **state)
{
    (void)state;
    char reason[DEADLINE_REASON_MAX];
    assert_int_equal(deadline_parse("1700000060 spot node\n", (int64_t)1700000000 * SECOND, reason),
                     60000);
    assert_string_equal(reason, "spot node");
    assert_int_equal(deadline_parse("1700000000", (int64_t)1700000005 * SECOND, reason), 0);
    assert_string_equal(reason, "");
    assert_int_equal(deadline_parse("", 0, reason), -1);
    assert_int_equal(deadline_parse("soon spot node", 0, reason), -1);
    assert_int_equal(deadline_parse("-5 x", 0, reason), -1);
    assert_int_equal(deadline_parse("99999999999999999999999999999999999999999 x", 0, reason), -1);
    char *longer AUTO_FREE = mem_alloc(3000);
    memset(longer, 'r', 2999);
    memcpy(longer, "10 ", 3);
    assert_int_equal(deadline_parse(longer, 0, reason), 10000);
    assert_int_equal(strlen(reason), DEADLINE_REASON_MAX - 1);
}

static void test_file(void **state)
{
    (void)state;
    char path[] = "/tmp/hvd-deadline-XXXXXX", reason[DEADLINE_REASON_MAX];
    struct error err = ERROR_INIT;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(deadline_read(path, reason, &err), -2); /* empty */
    assert_non_null(strstr(err.text, path));
    assert_true(dprintf(fd, "1700001000 gone\n") > 0);
    unit_clock_stop(0, (int64_t)1700000000 * SECOND);
    assert_int_equal(deadline_read(path, reason, &err), 1000 * 1000);
    unit_clock_run();
    assert_string_equal(reason, "gone");
    close(fd);
    unlink(path);
    assert_int_equal(deadline_read(path, reason, &err), -1); /* there is none */
    assert_int_equal(deadline_read("/", reason, &err), -2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
