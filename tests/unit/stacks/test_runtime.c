/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "stacks/runtime_test.h"

static void test_files(void **state)
{
    (void)state;
    static const char text[] =
        "7f0000001000-7f0000002000 r-xp 00001000 fe:01 12                   "
        "/lib/libpython3.9.so.1.0\n"
        "7f0000000000-7f0000001000 r--p 00000000 fe:01 12                   "
        "/lib/libpython3.9.so.1.0\n"
        "7f0000003000-7f0000004000 r--p 00000000 fe:01 13                   /lib/libc.so.6\n"
        "7f0000004000-7f0000005000 rw-p 00000000 00:00 0 \n"
        "7f0000005000-7f0000006000 rw-p 00000000 00:00 0                    [stack]\n"
        "5555555540-5555560000 r--p 00002000 fe:01 14                       /opt/a b/train "
        "(deleted)\n"
        "rubbish\n"
        "1-2 r--p\n"
        "3000-1000 r--p 00000000 fe:01 15                                   /x/python\n"
        "5555000000-5555001000 r--p 00000000 fe:01 16                       /x/python3.12";
    struct mapped_files files;
    mapped_files_read(text, "/opt/a b/train (deleted)", &files);
    assert_int_equal(files.count, 3);
    assert_string_equal(files.items[0].path, "/opt/a b/train (deleted)");
    assert_int_equal(files.items[0].offset, 0x2000);
    assert_int_equal(files.items[0].inode, 14);
    assert_int_equal(files.items[0].end, 0x5555560000);
    assert_string_equal(files.items[1].path, "/lib/libpython3.9.so.1.0");
    assert_int_equal(files.items[1].start, 0x7f0000000000);
    assert_int_equal(files.items[1].offset, 0);
    assert_string_equal(files.items[2].path, "/x/python3.12");
    mapped_files_destroy(&files);
    mapped_files_read("", "/x", &files);
    assert_int_equal(files.count, 0);
    mapped_files_destroy(&files);
}

static void test_versions(void **state)
{
    (void)state;
    assert_int_equal(mapped_minor_version("/usr/bin/python3.10"), 10);
    assert_int_equal(mapped_minor_version("/usr/lib/libpython3.9.so.1.0"), 9);
    assert_int_equal(mapped_minor_version("/opt/python3.9/bin/python"), -1);
    assert_int_equal(mapped_minor_version("/usr/bin/python3"), -1);
    assert_int_equal(mapped_minor_version("python3.x"), -1);
    assert_int_equal(mapped_minor_version("python3.99999999999999999999"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_versions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
