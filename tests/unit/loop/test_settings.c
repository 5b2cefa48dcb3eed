/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "loop/knobs_test.h"

static struct buf of(const char *first, const char *second)
{
    struct buf settings = BUF_INIT(CORE_MESSAGE_MAX);
    settings_add(&settings, "ONE", first);
    if (second != NULL)
        settings_add(&settings, "TWO", second);
    return settings;
}

static void compare(struct buf own, struct buf other, const char *expected)
{
    struct error err = ERROR_INIT;
    int rc = settings_compare(&own, 3, buf_text(&other), other.length, &err);
    assert_int_equal(rc, expected == NULL ? 0 : -1);
    assert_string_equal(err.text, expected == NULL ? "" : expected);
    buf_destroy(&own);
    buf_destroy(&other);
}

static void test_comparisons(void **state)
{
    (void)state;
    compare(of("1", "x"), of("1", "x"), NULL);
    compare(of("1", "x"), of("1", "y"),
            "TWO is 'x' on rank 0, and 'y' on rank 3: it must be the same on all ranks");
    compare(of("1", "x"), of("1", NULL), "rank 3 has another version of libhvd than rank 0");
    compare(of("1", NULL), of("1", "x"), "rank 3 has another version of libhvd than rank 0");
}

static void test_rubbish(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct buf own = of("1", "x");
    assert_int_equal(settings_compare(&own, 1, "\xff\xff\xff\xff\xff\x01", 6, &err), -1);
    assert_int_equal(settings_compare(&own, 1, "", 0, &err), -1);
    buf_destroy(&own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_comparisons),
        cmocka_unit_test(test_rubbish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
