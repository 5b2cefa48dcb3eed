/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/strv.h"

static void test_empty(void **state)
{
    (void)state;
    struct strv v = STRV_INIT;
    assert_non_null(strv_items(&v));
    assert_false(strv_has(&v, ""));
    assert_null(strv_items(&v)[0]);
    assert_null(strv_env_get(&v, "A"));
    strv_env_unset(&v, "A");
    strv_copy(&v, NULL);
    assert_int_equal(v.count, 0);
    strv_destroy(&v);
    strv_destroy(&v);
}

static void test_adds(void **state)
{
    (void)state;
    AUTO_STRV struct strv v = STRV_INIT;
    char local[] = "one";
    strv_add(&v, local);
    local[0] = 'X'; /* it is a copy */
    strv_add_take(&v, mem_strdup("two"));
    strv_add_n(&v, "threefour", 5);
    strv_printf(&v, "%s=%d", "four", 4);
    strv_add(&v, "");
    assert_int_equal(v.count, 5);
    assert_string_equal(v.items[0], "one");
    assert_string_equal(v.items[1], "two");
    assert_string_equal(v.items[2], "three");
    assert_string_equal(v.items[3], "four=4");
    assert_string_equal(v.items[4], "");
    assert_null(strv_items(&v)[5]);
    assert_true(strv_has(&v, "two") && strv_has(&v, ""));
    assert_false(strv_has(&v, "thre"));
}

static void test_splits(void **state)
{
    (void)state;
    AUTO_STRV struct strv v = STRV_INIT;
    strv_split(&v, "", ",");
    strv_split(&v, " \t ", " \t");
    assert_int_equal(v.count, 0);
    strv_split(&v, ",one,,two three,", ",");
    strv_split(&v, "four\tfive", " \t");
    assert_int_equal(v.count, 4);
    assert_string_equal(v.items[0], "one");
    assert_string_equal(v.items[1], "two three");
    assert_string_equal(v.items[2], "four");
    assert_string_equal(v.items[3], "five");
    assert_true(strv_has(&v, "one") && strv_has(&v, "five"));
    assert_false(strv_has(&v, "two") || strv_has(&v, ""));
}

static void test_joins(void **state)
{
    (void)state;
    AUTO_STRV struct strv v = STRV_INIT;
    char *none AUTO_FREE = strv_join(v.items, v.count, ",");
    strv_add(&v, "one");
    char *one AUTO_FREE = strv_join(v.items, v.count, ",");
    strv_add(&v, "");
    strv_add(&v, "three");
    char *all AUTO_FREE = strv_join(v.items, v.count, ", ");
    assert_string_equal(none, "");
    assert_string_equal(one, "one");
    assert_string_equal(all, "one, , three");
}

static void test_stays_null_ended_while_it_grows(void **state)
{
    (void)state;
    AUTO_STRV struct strv v = STRV_INIT;
    for (int i = 0; i < 100; i++) {
        strv_printf(&v, "%d", i);
        assert_int_equal(v.count, i + 1);
        assert_null(strv_items(&v)[i + 1]);
    }
    AUTO_STRV struct strv copy = STRV_INIT;
    strv_add(&copy, "first");
    strv_copy(&copy, strv_items(&v));
    assert_int_equal(copy.count, 101);
    assert_string_equal(copy.items[0], "first");
    assert_string_equal(copy.items[100], "99");
    assert_ptr_not_equal(copy.items[1], v.items[0]);
}

static void test_environment(void **state)
{
    (void)state;
    AUTO_STRV struct strv v = STRV_INIT;
    strv_env_set(&v, "PATH", "/bin");
    strv_env_put(&v, "PAT=x=y");
    strv_env_set(&v, "EMPTY", "");
    assert_string_equal(strv_env_get(&v, "PATH"), "/bin");
    assert_string_equal(strv_env_get(&v, "PAT"), "x=y");
    assert_string_equal(strv_env_get(&v, "EMPTY"), "");
    assert_null(strv_env_get(&v, "PA")); /* the beginning of a name is not the name */
    assert_null(strv_env_get(&v, "PATHS"));
    strv_env_set(&v, "PATH", "/usr/bin");
    assert_int_equal(v.count, 3);
    assert_string_equal(v.items[0], "PATH=/usr/bin"); /* where it was */
    strv_env_unset(&v, "PATH");
    assert_null(strv_env_get(&v, "PATH"));
    assert_int_equal(v.count, 2);
    assert_string_equal(v.items[0], "PAT=x=y");
    assert_null(strv_items(&v)[2]);
    strv_env_unset(&v, "PATH");
    assert_int_equal(v.count, 2);
    char *pairs[] = {(char *)"A=1", (char *)"B=2"}; /* borrowed, as of a message */
    const struct strv borrowed = {.items = pairs, .count = 1};
    assert_string_equal(strv_env_get(&borrowed, "A"), "1");
    assert_null(strv_env_get(&borrowed, "B"));
}

/* The value may be the vector's own. */
static void test_own_value(void **state)
{
    (void)state;
    AUTO_STRV struct strv v = STRV_INIT;
    strv_env_put(&v, "A=1");
    strv_env_put(&v, v.items[0]);
    assert_string_equal(v.items[0], "A=1");
    strv_env_set(&v, "A", strv_env_get(&v, "A"));
    assert_string_equal(v.items[0], "A=1");
    assert_int_equal(v.count, 1);
}

/* An inherited environment may hold a name twice: neither may survive a change. */
static void test_repeated_names(void **state)
{
    (void)state;
    AUTO_STRV struct strv v = STRV_INIT;
    static char *const inherited[] = {"A=1", "B=2", "A=3", "A=4", "C=5", NULL};
    strv_copy(&v, inherited);
    strv_env_set(&v, "A", "new");
    assert_int_equal(v.count, 3);
    assert_string_equal(v.items[0], "A=new");
    assert_string_equal(v.items[1], "B=2");
    assert_string_equal(v.items[2], "C=5");
    strv_copy(&v, inherited);
    strv_env_unset(&v, "A");
    assert_null(strv_env_get(&v, "A"));
    assert_int_equal(v.count, 4);
    assert_string_equal(v.items[3], "C=5");
    assert_null(strv_items(&v)[4]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_adds),
        cmocka_unit_test(test_splits),
        cmocka_unit_test(test_joins),
        cmocka_unit_test(test_stays_null_ended_while_it_grows),
        cmocka_unit_test(test_environment),
        cmocka_unit_test(test_own_value),
        cmocka_unit_test(test_repeated_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
