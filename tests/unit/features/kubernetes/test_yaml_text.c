/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "features/kubernetes/kubernetes.h"

static void is(const char *text, const char *expected)
{
    struct buf out AUTO_BUF = BUF_INIT(256);
    assert_true(yaml_text_is_valid(text));
    yaml_text_put(text, &out);
    assert_string_equal(buf_text(&out), expected);
}

static void test_plain(void **state)
{
    (void)state;
    is("train", "train");
    is("registry.example.org/a_b-c.d", "registry.example.org/a_b-c.d");
}

/* A reader could take them for something else. */
static void test_quoted(void **state)
{
    (void)state;
    is("", "\"\"");
    is("12", "\"12\"");
    is("-x", "\"-x\"");
    is(".5", "\".5\"");
    is("~", "\"~\"");
    is("no", "\"no\"");
    is("Yes", "\"Yes\"");
    is("NULL", "\"NULL\"");
    is("a: b", "\"a: b\"");
    is("a #b", "\"a #b\"");
    is("a,b", "\"a,b\"");
    is("a:1", "\"a:1\"");
}

static void test_escapes(void **state)
{
    (void)state;
    is("a\"b\\c", "\"a\\\"b\\\\c\"");
    is("a\nb\tc\rd", "\"a\\nb\\tc\\x0Dd\"");
    is("\x1b[1m\x7f", "\"\\x1B[1m\\x7F\"");
    is("\xc2\x85\xc2\xa0", "\"\\x85\xc2\xa0\"");
    is("\xe2\x80\xa7\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xaa",
       "\"\xe2\x80\xa7\\u2028\\u2029\xe2\x80\xaa\"");
    is("\xef\xbb\xbf\xef\xbf\xbe\xef\xbf\xbd", "\"\\uFEFF\\uFFFE\xef\xbf\xbd\"");
    is("\xf0\x9f\x9a\x80\xf0\x9f\xbf\xbf", "\"\xf0\x9f\x9a\x80\\U0001FFFF\"");
}

static void test_not_utf8(void **state)
{
    (void)state;
    assert_false(yaml_text_is_valid("\xff"));
    assert_false(yaml_text_is_valid("a\xc3"));
    assert_false(yaml_text_is_valid("\xed\xa0\x80"));     /* a surrogate */
    assert_false(yaml_text_is_valid("\xc0\xaf"));         /* overlong */
    assert_false(yaml_text_is_valid("\xf4\x90\x80\x80")); /* above U+10FFFF */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_quoted),
        cmocka_unit_test(test_escapes),
        cmocka_unit_test(test_not_utf8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
