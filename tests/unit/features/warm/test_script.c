/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "features/warm/warm_agent.h"

static char folder[] = "/tmp/hvdrun-XXXXXX", python[80], script[80], search[80];

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, 0755), 0);
}

static int setup(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(python, sizeof(python), "%s/python3", folder);
    snprintf(script, sizeof(script), "%s/train", folder);
    snprintf(search, sizeof(search), "PATH=%s", folder);
    write_file(python, "");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    unlink(python);
    unlink(script);
    return rmdir(folder);
}

static bool read_script(const char *first_line, struct warm_script *out)
{
    char *argv[] = {"train", "a b", NULL}, *envp[] = {"A=1", search, NULL};
    struct child_spec spec = {.path = script, .argv = argv, .envp = envp};
    write_file(script, first_line);
    return warm_script_read(&spec, out);
}

static void test_a_plain_line(void **state)
{
    static const char *const lines[][3] = {
        {"#!/usr/bin/env python3\n", "python3", NULL},
        {"#! /usr/bin/env \t python3 \nimport this\n", "python3", NULL},
        {"#!/opt/x/python3.12\n", "/opt/x/python3.12", NULL},
        {"#!/opt/x/python3 -u\n", "/opt/x/python3", "-u"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        struct warm_script out;
        size_t at = 0;
        assert_true(read_script(lines[i][0], &out));
        assert_string_equal(out.argv.items[at++], lines[i][1]);
        assert_string_equal(out.path, lines[i][1][0] == '/' ? lines[i][1] : python);
        if (lines[i][2] != NULL)
            assert_string_equal(out.argv.items[at++], lines[i][2]);
        assert_string_equal(out.argv.items[at++], script);
        assert_string_equal(out.argv.items[at++], "a b");
        assert_int_equal(out.argv.count, at);
        warm_script_destroy(&out);
    }
}

static void test_others(void **state)
{
    char longer[300];
    static const char *const lines[] = {
        "",
        "import os\n",
        "#!",
        "#!/usr/bin/env python3", /* without an end of the line, it may be longer */
        "#!/usr/bin/env\n",
        "#!/usr/bin/env python4\n", /* not in PATH */
        "#!/usr/bin/env -S python3 -u\n",
        "#!/usr/bin/env A=1\n",
        "#!/usr/bin/env python3\r\n",
        "#!/bin/sh\n",
        "#!python3\n",
        "#!/opt/x/python3 -u -O\n",
        "#!/opt/x/python3 -m\n",
        "#!/opt/x/python3 -i\n",
    };
    struct warm_script out;
    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        assert_false(read_script(lines[i], &out));
    snprintf(longer, sizeof(longer), "#!/%0200d/python3\n", 0);
    assert_false(read_script(longer, &out));
    struct child_spec spec = {.path = folder};
    assert_false(warm_script_read(&spec, &out));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_plain_line),
                                       cmocka_unit_test(test_others)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
