/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/status.h"

static void test_set(void **state)
{
    (void)state;
    struct error err = {.status = 9, .errnum = 9, .text = "old and longer than the new one"};
    assert_int_equal(error_set(&err, "no slot on %s", "a"), -1);
    assert_string_equal(err.text, "no slot on a");
    assert_int_equal(err.status, 0);
    assert_int_equal(err.errnum, 0);
}

static void test_status(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    assert_string_equal(err.text, "");
    assert_int_equal(error_status(&err, STATUS_NO_SLOTS, "%d slots", 3), -1);
    assert_string_equal(err.text, "3 slots");
    assert_int_equal(err.status, STATUS_NO_SLOTS);
    assert_int_equal(err.errnum, 0);
}

static void test_errno(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    char wanted[256];
    snprintf(wanted, sizeof(wanted), "cannot open x: %s", strerror(ENOENT));
    assert_int_equal(error_errno(&err, ENOENT, "cannot open %s", "x"), -1);
    assert_string_equal(err.text, wanted);
    assert_int_equal(err.errnum, ENOENT);
    error_errno(&err, 0, "no cause");
    assert_string_equal(err.text, "no cause");
}

static void test_wrap_keeps_the_codes(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    error_errno(&err, EACCES, "cannot open y");
    char inner[ERROR_TEXT_MAX], wanted[ERROR_TEXT_MAX + 32];
    memcpy(inner, err.text, sizeof(inner));
    err.status = STATUS_USAGE;
    assert_int_equal(error_wrap(&err, "line %d", 7), -1);
    snprintf(wanted, sizeof(wanted), "line 7: %s", inner);
    assert_string_equal(err.text, wanted);
    assert_int_equal(err.errnum, EACCES);
    assert_int_equal(err.status, STATUS_USAGE);
    error_errno(&err, EACCES, "cannot open y");
    assert_int_equal(error_wrap_usage(&err, "line %d", 7), -1);
    assert_string_equal(err.text, wanted);
    assert_int_equal(err.errnum, EACCES);
    assert_int_equal(err.status, STATUS_USAGE);
}

static void test_null_is_accepted(void **state)
{
    (void)state;
    assert_int_equal(error_set(NULL, "x"), -1);
    assert_int_equal(error_status(NULL, 2, "x"), -1);
    assert_int_equal(error_errno(NULL, ENOENT, "x"), -1);
    assert_int_equal(error_wrap(NULL, "x"), -1);
    assert_int_equal(error_wrap_usage(NULL, "x"), -1);
}

/* Texts of every length around the limit are cut, never written beyond it. */
static void test_long_texts_are_cut(void **state)
{
    (void)state;
    char text[2 * ERROR_TEXT_MAX];
    for (size_t length = ERROR_TEXT_MAX - 60; length < ERROR_TEXT_MAX + 60; length++) {
        struct {
            struct error err;
            char behind[8];
        } guarded = {.behind = "intact"};
        memset(text, 'a', length);
        text[length] = '\0';
        error_errno(&guarded.err, ENOENT, "%s", text);
        assert_true(strlen(guarded.err.text) < ERROR_TEXT_MAX);
        assert_memory_equal(guarded.err.text, text, ERROR_TEXT_MAX - 61);
        error_set(&guarded.err, "inner");
        error_wrap(&guarded.err, "%s", text);
        assert_true(strlen(guarded.err.text) < ERROR_TEXT_MAX);
        error_set(&guarded.err, "%s", text);
        error_wrap(&guarded.err, "outer");
        assert_memory_equal(guarded.err.text, "outer: aaa", 10);
        assert_true(strlen(guarded.err.text) < ERROR_TEXT_MAX);
        assert_string_equal(guarded.behind, "intact");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set),
        cmocka_unit_test(test_status),
        cmocka_unit_test(test_errno),
        cmocka_unit_test(test_wrap_keeps_the_codes),
        cmocka_unit_test(test_null_is_accepted),
        cmocka_unit_test(test_long_texts_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
