/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "stacks/native_test.h"

static void check(const char *function, const char *expected)
{
    struct unwind_frame frame = {.function = function, .object = "/lib/x.so", .offset = 0x1b40};
    char *name = native_name(&frame);
    assert_string_equal(name, expected);
    free(name);
}

static void test_names(void **state)
{
    (void)state;
    check("main", "main");
    check("__libc_start_main@@GLIBC_2.34", "__libc_start_main");
    check("c10d::Work::wait(std::chrono::duration<long>)", "c10d::Work::wait");
    check("at::native::(anonymous namespace)::copy(at::Tensor&)",
          "at::native::(anonymous namespace)::copy");
    check("A::operator()(int) const", "A::operator()");
    check("operator<<(std::ostream&, A)", "operator<<");
    check("A<int, B<C> >::run(int)", "A<...>::run");
    check("f()", "f");
    check("", "");
    check(NULL, "+0x1b40");
}

static void test_no_file(void **state)
{
    (void)state;
    struct unwind_frame frame = {.object = "", .pc = 1};
    char *name = native_name(&frame);
    assert_string_equal(name, "(code without a file)");
    free(name);
}

static void test_a_long_name(void **state)
{
    (void)state;
    char text[5000];
    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    struct unwind_frame frame = {.function = text, .object = "x"};
    char *plain = native_name(&frame);
    assert_in_range(strlen(plain), 100, 160);
    free(plain);
    text[4000] = '(';
    char *shortened = native_name(&frame);
    assert_in_range(strlen(shortened), 100, 160);
    free(shortened);
}

static void test_kinds(void **state)
{
    (void)state;
    assert_true(native_name_is_python("_PyEval_EvalFrameDefault"));
    assert_true(native_name_is_python("_PyEval_EvalFrameDefault.cold"));
    assert_false(native_name_is_python("PyObject_Vectorcall"));
    assert_true(native_name_is_start("_start", "/app/x"));
    assert_true(native_name_is_start("clone3", "/lib/libc.so.6"));
    assert_true(native_name_is_start("+0x271c9", "/lib/libc.so.6"));
    assert_false(native_name_is_start("+0x271c9", "/app/x"));
    assert_false(native_name_is_start("clone_repository", "/app/x"));
    assert_false(native_name_is_start("main", "/app/x"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_no_file),
        cmocka_unit_test(test_a_long_name),
        cmocka_unit_test(test_kinds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
