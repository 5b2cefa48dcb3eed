/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "io/pty.h"

static void expect_size(int fd, int rows, int columns)
{
    struct winsize size = {.ws_row = 0};
    assert_int_equal(ioctl(fd, TIOCGWINSZ, &size), 0);
    assert_int_equal(size.ws_row, rows);
    assert_int_equal(size.ws_col, columns);
}

static void test_both_ways(void **state)
{
    (void)state;
    int ends[2];
    char text[16] = "";
    assert_int_equal(pty_open(ends, 7, 9), 0);
    expect_size(ends[1], 7, 9);
    assert_int_equal(fd_write(ends[0], "in\n", 3), 3);
    assert_int_equal(fd_read(ends[1], text, sizeof(text)), 3);
    assert_string_equal(text, "in\n");
    fd_close(&ends[0]);
    fd_close(&ends[1]);
}

static void test_output_alone(void **state)
{
    (void)state;
    struct stat info;
    static const char bytes[] = "a\nb\tc\r\x03\x04";
    int ends[2];
    char text[64] = "";
    assert_int_equal(pty_open_output(ends, 0, 0), 0);
    expect_size(ends[1], 0, 0);
    assert_int_equal(isatty(ends[1]), 1);
    assert_int_equal(fstat(ends[1], &info), 0);
    assert_int_equal(info.st_mode & 0777, 0200);
    assert_int_equal(fd_write(ends[1], bytes, sizeof(bytes)), sizeof(bytes));
    assert_int_equal(fd_read(ends[0], text, sizeof(text)), sizeof(bytes));
    assert_memory_equal(text, bytes, sizeof(bytes));
    assert_int_equal(fd_read(ends[1], text, sizeof(text)), -1);
    fd_close(&ends[1]);
    assert_int_equal(fd_read(ends[0], text, sizeof(text)), -1);
    fd_close(&ends[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_ways),
        cmocka_unit_test(test_output_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
