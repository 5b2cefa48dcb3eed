/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"

static bool changed(struct file_stamp *old, const char *path)
{
    struct file_stamp now = file_stamp_of(path);
    bool differs = !file_stamp_equal(&now, old);
    *old = now;
    return differs;
}

static void test_what_changes_it(void **state)
{
    (void)state;
    char path[] = "/tmp/test_stamp.XXXXXX", other[] = "/tmp/test_stamp.XXXXXX";
    int fd = mkstemp(path), other_fd = mkstemp(other);
    assert_true(fd >= 0 && other_fd >= 0);
    struct file_stamp stamp = file_stamp_of(path);
    assert_false(changed(&stamp, path));
    assert_int_equal(write(fd, "x", 1), 1);
    assert_true(changed(&stamp, path));
    assert_false(changed(&stamp, path));
    const struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    assert_int_equal(futimens(fd, times), 0);
    assert_true(changed(&stamp, path));
    assert_int_equal(write(other_fd, "x", 1), 1);
    assert_int_equal(futimens(other_fd, times), 0);
    assert_int_equal(rename(other, path), 0); /* another one, as large and as old */
    assert_true(changed(&stamp, path));
    assert_int_equal(unlink(path), 0);
    assert_true(changed(&stamp, path));
    assert_false(changed(&stamp, path));
    close(fd);
    close(other_fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_what_changes_it)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
