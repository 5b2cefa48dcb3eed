/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "driver/elastic/discovery_test.h"

static enum discovery_settled look(struct discovery_settle *settle, const char *text)
{
    return discovery_settle_look(settle, true, text, strlen(text));
}

static enum discovery_settled fail_with(struct discovery_settle *settle, const char *text)
{
    return discovery_settle_look(settle, false, text, strlen(text));
}

static void test_twice_alike(void **state)
{
    (void)state;
    struct discovery_settle settle = {.any = false};
    assert_int_equal(look(&settle, ""), SETTLED_NEW);
    assert_int_equal(look(&settle, ""), SETTLED_SAME);
    assert_int_equal(look(&settle, "a"), SETTLED_AGAIN);
    assert_int_equal(look(&settle, "a\nb"), SETTLED_AGAIN);
    assert_int_equal(look(&settle, "a\nb"), SETTLED_NEW);
    assert_int_equal(look(&settle, "a\nb"), SETTLED_SAME);
}

/* A glimpse of something else leaves no trace. */
static void test_glimpse(void **state)
{
    (void)state;
    struct discovery_settle settle = {.any = false};
    assert_int_equal(look(&settle, "a"), SETTLED_NEW);
    assert_int_equal(look(&settle, ""), SETTLED_AGAIN);
    assert_int_equal(look(&settle, "a"), SETTLED_SAME);
    assert_int_equal(look(&settle, ""), SETTLED_AGAIN);
    assert_int_equal(fail_with(&settle, "gone"), SETTLED_AGAIN);
    assert_int_equal(look(&settle, "a"), SETTLED_SAME);
}

static void test_errors(void **state)
{
    (void)state;
    struct discovery_settle settle = {.any = false};
    assert_int_equal(fail_with(&settle, "a"), SETTLED_NEW);
    assert_int_equal(fail_with(&settle, "a"), SETTLED_SAME);
    assert_int_equal(look(&settle, "a"), SETTLED_AGAIN);
    assert_int_equal(fail_with(&settle, "b"), SETTLED_AGAIN);
    assert_int_equal(look(&settle, "a"), SETTLED_AGAIN);
    assert_int_equal(look(&settle, "a"), SETTLED_NEW);
    assert_int_equal(discovery_settle_look(&settle, true, "a\0b", 3), SETTLED_AGAIN);
    assert_int_equal(discovery_settle_look(&settle, true, "a\0c", 3), SETTLED_AGAIN);
    assert_int_equal(discovery_settle_look(&settle, true, "a\0c", 3), SETTLED_NEW);
}

static void test_restless(void **state)
{
    (void)state;
    struct discovery_settle settle = {.any = false};
    int looks = 0;
    enum discovery_settled settled = look(&settle, "start");
    do {
        char text[32];
        snprintf(text, sizeof(text), "%d", looks++);
        settled = look(&settle, text);
    } while (settled == SETTLED_AGAIN && looks < 1000);
    assert_int_equal(settled, SETTLED_NEW);
    assert_in_range(looks, 5, 100);
    assert_int_equal(look(&settle, "start"), SETTLED_AGAIN);
    assert_int_equal(look(&settle, "start"), SETTLED_NEW);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_twice_alike),
        cmocka_unit_test(test_glimpse),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_restless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
