/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "features/warm/kind.h"

#define WORDS_MAX 8

struct line {
    const char *argv[WORDS_MAX];
    char kind;
    size_t options, rest;
    const char *target;
};

#define ARGV(...)         \
    {                     \
        __VA_ARGS__, NULL \
    }

static const char *read_line(const char *path, const char *const *argv, struct warm_command *out)
{
    return warm_command_read(path, (char *const *)(uintptr_t)argv, out);
}

static void test_what_it_runs(void **state)
{
    static const struct line lines[] = {
        {ARGV("python3", "train.py"), 's', 1, 2, "train.py"},
        {ARGV("python3", "-u", "-OO", "train.py", "-m", "x"), 's', 3, 4, "train.py"},
        {ARGV("python3", "-X", "dev", "-Wignore", "-W", "error", "a.py"), 's', 6, 7, "a.py"},
        {ARGV("python", "-m", "pkg.train", "--lr", "1"), 'm', 1, 3, "pkg.train"},
        {ARGV("python", "-uB", "-mpkg"), 'm', 2, 3, "pkg"},
        {ARGV("python", "-c", "print(1)", "x"), 'c', 1, 3, "print(1)"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        struct warm_command out;
        assert_null(read_line("/usr/bin/python3.11", lines[i].argv, &out));
        assert_int_equal(out.kind, lines[i].kind);
        assert_int_equal(out.options, lines[i].options);
        assert_int_equal(out.rest, lines[i].rest);
        assert_string_equal(out.target, lines[i].target);
    }
}

static void test_what_cannot_be_warm(void **state)
{
    static const char *const lines[][WORDS_MAX] = {
        ARGV("python3"),
        ARGV("python3", "-"),
        ARGV("python3", "-i", "a.py"),
        ARGV("python3", "-x", "a.py"),
        ARGV("python3", "-um", "pkg"),
        ARGV("python3", "--version"),
        ARGV("python3", "-c"),
        ARGV("python3", "-m"),
        ARGV("python3", "-X"),
        ARGV("python3", "--", "a.py"),
    };
    struct warm_command out;
    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        assert_non_null(read_line("/usr/bin/python3", lines[i], &out));
    assert_non_null(
        read_line("/usr/bin/env", (const char *const[]){"env", "python3", "a.py", NULL}, &out));
    assert_non_null(read_line("./train", (const char *const[]){"./train", NULL}, &out));
    assert_non_null(
        read_line("./python_train.sh", (const char *const[]){"python_train.sh", "x", NULL}, &out));
    assert_null(read_line("python3.13t", (const char *const[]){"python3.13t", "x", NULL}, &out));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_what_it_runs),
                                       cmocka_unit_test(test_what_cannot_be_warm)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
