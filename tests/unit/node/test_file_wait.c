/* SPDX-License-Identifier: Apache-2.0 */
/* The file system for which a thread waits, from files that look like those of /proc. */
#include "fake_root.h"

#include <sys/syscall.h>

#include "node/proc_state.h"

#define MOUNTS                                                          \
    "4 1 8:1 / / rw - ext4 /dev/sda1 rw\n"                              \
    "42 4 0:40 / /data\\040x rw,relatime shared:1 - nfs4 c1:/data rw\n" \
    "43 4 0:41 / /home rw - fuse.sshfs x rw\n44 4 0:42 / /x rw\n"

static int open_root(void **state)
{
    char *root = mem_strdup(FAKE_ROOT);
    *state = root;
    return mkdtemp(root) == NULL;
}

static int close_root(void **state)
{
    fake_remove(*state);
    free(*state);
    return 0;
}

static void expect(const char *root, long call, const char *arguments, const char *info,
                   const char *wanted)
{
    char *text AUTO_FREE = mem_printf("%ld %s\n", call, arguments);
    put_file(root, "proc/7/syscall", text);
    put_file(root, "proc/7/fdinfo/3", info);
    char *system AUTO_FREE = file_wait_system(root, 7);
    if (wanted == NULL)
        assert_null(system);
    else
        assert_string_equal(system, wanted);
}

static void test_systems(void **state)
{
    const char *root = *state;
    put_file(root, "proc/7/mountinfo", MOUNTS);
    expect(root, SYS_read, "0x3 0x7f00 0x1000", "pos:\t0\nflags:\t0100000\nmnt_id:\t42\n", "nfs4");
    expect(root, SYS_fsync, "0x3", "mnt_id:\t43\n", "fuse.sshfs");
    expect(root, SYS_read, "0x3", "mnt_id:\t4\n", NULL);  /* a disk */
    expect(root, SYS_read, "0x3", "mnt_id:\t44\n", NULL); /* a damaged line */
    expect(root, SYS_read, "0x3", "mnt_id:\t45\n", NULL);
    expect(root, SYS_read, "0x3", "pos:\t0\n", NULL);
    expect(root, SYS_read, "0x4", "mnt_id:\t42\n", NULL);
    expect(root, SYS_read, "0xffffffffffffff9c", "mnt_id:\t42\n", NULL);
    expect(root, SYS_futex, "0x3", "mnt_id:\t42\n", NULL);
}

static void test_no_call(void **state)
{
    const char *root = *state;
    assert_null(file_wait_system(root, 7));
    put_file(root, "proc/7/syscall", "running\n");
    assert_null(file_wait_system(root, 7));
    put_file(root, "proc/7/syscall", "");
    assert_null(file_wait_system(root, 7));
    put_file(root, "proc/7/syscall", "-1 0x7f 0x7f\n");
    assert_null(file_wait_system(root, 7));
    put_file(root, "proc/7/fdinfo/3", "mnt_id:\t42\n");
    put_file(root, "proc/7/syscall", "0 0x3");
    assert_null(file_wait_system(root, 7));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_systems, open_root, close_root),
        cmocka_unit_test_setup_teardown(test_no_call, open_root, close_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
