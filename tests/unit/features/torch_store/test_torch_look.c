/* SPDX-License-Identifier: Apache-2.0 */
/* Trees of files such as PyTorch's. */
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/mem.h"
#include "features/torch_store/torch_look.h"
#include "unit.h"

static void test_version(void **state)
{
    (void)state;
    int major = 0, minor = 0;
    assert_true(torch_look_version("__version__ = '1.13.1'\ndebug = False\n", &major, &minor));
    assert_int_equal(major * 100 + minor, 113);
    assert_true(torch_look_version("from typing import Optional\n\n__all__ = ['__version__']\n"
                                   "__version__ = \"2.11.0a0+git1\"\n",
                                   &major, &minor));
    assert_int_equal(major * 100 + minor, 211);
    assert_false(torch_look_version("", &major, &minor));
    assert_false(torch_look_version("__version__", &major, &minor));
    assert_false(torch_look_version("__version__ = 2.6\nx = '1.2'", &major, &minor));
    assert_false(torch_look_version("__version__ = '2'", &major, &minor));
    assert_false(torch_look_version("__version__ = 'x.y'", &major, &minor));
    assert_false(torch_look_version("my__version__ = '2.6'", &major, &minor));
}

static const char marker[] = "a text that no other file of this test has";

/* This program has it in its .rodata. */
static void test_library(void **state)
{
    (void)state;
    char *reversed AUTO_FREE = mem_strdup("elif siht ni ton si tahw");
    size_t length = strlen(reversed);
    for (size_t i = 0; i < length / 2; i++) {
        char other = reversed[i];
        reversed[i] = reversed[length - 1 - i];
        reversed[length - 1 - i] = other;
    }
    assert_int_equal(torch_look_rodata("/proc/self/exe", marker), 1);
    assert_int_equal(torch_look_rodata("/proc/self/exe", reversed), 0);
    assert_int_equal(torch_look_rodata("/etc/passwd", marker), -1);
    assert_int_equal(torch_look_rodata("/does/not/exist", marker), -1);
}

static void write_file(const char *folder, const char *name, const char *text, mode_t mode)
{
    char *path AUTO_FREE = mem_printf("%s/%s", folder, name);
    for (char *at = path + strlen(folder) + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        (void)mkdir(path, 0755);
        *at = '/';
    }
    int fd AUTO_FD = fd_open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
}

static void expect(const char *folder, const char *program, const char *text)
{
    struct error err = ERROR_INIT;
    char *path AUTO_FREE = mem_printf("%s/%s", folder, program);
    char *search AUTO_FREE = mem_printf("%s/venv/bin", folder);
    struct python_place place = {.path = path, .search = search};
    int result = torch_look(&place, &err);
    assert_int_equal(result, text == NULL ? 0 : -1);
    if (text != NULL && strstr(err.text, text) == NULL)
        fail_msg("'%s' is not in '%s'", text, err.text);
}

static int drop(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)info, (void)kind, (void)at;
    return remove(path);
}

static void test_look(void **state)
{
    (void)state;
    char folder[] = "/tmp/hvdrun-unit-look-XXXXXX";
    assert_non_null(mkdtemp(folder));
    write_file(folder, "venv/bin/python3", "", 0755);
    write_file(folder, "venv/pyvenv.cfg", "home = /usr/bin\n", 0644);
    write_file(folder, "script", "#!/usr/bin/env python3\n", 0755);
    write_file(folder, "other", "#!/bin/sh\n", 0755);
    expect(folder, "venv/bin/python3", "has no PyTorch in the usual places");
    expect(folder, "other", "other is not Python");
    expect(folder, "missing", "missing is not Python");
    static const char file[] = "venv/lib/python3.11/site-packages/torch/version.py";
    write_file(folder, file, "__version__ = '2.3.1+cu121'\n", 0644);
    expect(folder, "venv/bin/python3", NULL);
    expect(folder, "script", NULL);
    write_file(folder, file, "__version__ = '1.7.0'\n", 0644);
    expect(folder, "script", "PyTorch 1.7 is too old");
    write_file(folder, file, "__version__ = '2.6.0'\n", 0644);
    expect(folder, "script", "libtorch_cpu.so cannot be read"); /* in doubt */
    write_file(folder, file, "nothing", 0644);
    expect(folder, "script", "has no version");
    assert_int_equal(nftw(folder, drop, 8, FTW_DEPTH | FTW_PHYS), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_version),
        cmocka_unit_test(test_library),
        cmocka_unit_test(test_look),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
