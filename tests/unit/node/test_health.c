/* SPDX-License-Identifier: Apache-2.0 */
/* Facts that only a check asks for, read from folders that look like /etc, /proc and /sys. */
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

#include "base/mem.h"
#include "node/health.h"
#include "node/runtime_dir.h"

struct world {
    char root[64];
};

static int make_world(void **state)
{
    struct world *world = mem_alloc(sizeof(*world));
    snprintf(world->root, sizeof(world->root), "/tmp/hvdrun-health-XXXXXX");
    assert_non_null(mkdtemp(world->root));
    *state = world;
    return 0;
}

static int remove_world(void **state)
{
    struct world *world = *state;
    unsetenv("TMPDIR");
    runtime_dir_remove(world->root);
    free(world);
    return 0;
}

/* Makes the folders on the way too. */
static void put(const struct world *world, const char *path, const char *text)
{
    char *whole = mem_printf("%s%s", world->root, path);
    for (char *slash = whole + strlen(world->root) + 1; *slash != '\0'; slash++) {
        if (*slash != '/')
            continue;
        *slash = '\0';
        (void)mkdir(whole, 0700);
        *slash = '/';
    }
    FILE *file = fopen(whole, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    free(whole);
}

static void expect_own(const struct world *world, const char *hosts, const char *name,
                       const char *wanted)
{
    struct health health;
    put(world, "/etc/hosts", hosts);
    health_read(world->root, name, &health);
    assert_string_equal(health.own_address, wanted);
    health_clear(&health);
}

static void test_nothing_is_there(void **state)
{
    struct health health;
    const struct world *world = *state;
    health_read(world->root, "box", &health);
    assert_string_equal(health.system, "");
    assert_string_equal(health.gpu_driver, "");
    assert_string_equal(health.own_address, "");
    assert_int_equal(health.adapters.count, 0);
    health_clear(&health);
}

static void test_own_name(void **state)
{
    const struct world *world = *state;
    expect_own(world, "127.0.0.1 localhost\n127.0.1.1 box box.example\n", "box", "127.0.1.1");
    expect_own(world, "127.0.1.1\tother\tBOX", "box", "127.0.1.1");
    expect_own(world, "10.0.0.1 box\n127.0.1.1 box\n", "box", ""); /* the first line counts */
    expect_own(world, "# 127.0.1.1 box\n127.0.1.1 # box\n", "box", "");
    expect_own(world, "::1 box\n127.0.0.1 boxer\n", "box", "");
    expect_own(world, "127.0.0.1 localhost\n", "localhost", "");
    expect_own(world, "127.0.0.1 x\n", "", "");
    expect_own(world, "127.0.0.1\n\n   \n\t127.0.1.1 box\r\n", "box", "127.0.1.1");
    expect_own(world, "127.0.0.1 a\n127.0.0.2", "box", "");
}

static void expect_system(const struct world *world, const char *text, const char *wanted)
{
    struct health health;
    put(world, "/etc/os-release", text);
    health_read(world->root, "box", &health);
    assert_string_equal(health.system, wanted);
    health_clear(&health);
}

static void test_system(void **state)
{
    const struct world *world = *state;
    expect_system(world, "ID=x\nPRETTY_NAME=\"Some Linux 7\"\nA=B\n", "Some Linux 7");
    expect_system(world, "PRETTY_NAME=Plain\n", "Plain");
    expect_system(world, "PRETTY_NAME='Half", "Half");
    expect_system(world, "XPRETTY_NAME=No\n", "");
    expect_system(world, "", "");
}

static void test_gpu_driver(void **state)
{
    const struct world *world = *state;
    struct health health;
    put(world, "/sys/module/amdgpu/version", "6.7.0\n");
    health_read(world->root, "box", &health);
    assert_string_equal(health.gpu_driver, "AMD 6.7.0");
    health_clear(&health);
    put(world, "/proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.15  Release Build\n"
        "GCC version:  gcc version 12.2.0\n");
    health_read(world->root, "box", &health);
    assert_string_equal(health.gpu_driver, "NVIDIA 550.54.15");
    health_clear(&health);
    put(world, "/proc/driver/nvidia/version", "nothing of use\n1.2\n");
    health_read(world->root, "box", &health);
    assert_string_equal(health.gpu_driver, "AMD 6.7.0");
    health_clear(&health);
}

static void test_gpus(void **state)
{
    const struct world *world = *state;
    struct health health;
    put(world, "/proc/driver/nvidia/gpus/0000:b1:00.0/information",
        "Model: \t\t NVIDIA A100-SXM4-40GB\nIRQ:   \t\t 42\nGPU UUID: \t GPU-1\n"
        "Device Minor: \t 1\n");
    put(world, "/proc/driver/nvidia/gpus/0000:17:00.0/information",
        "Model: \t\t NVIDIA L4\nDevice Minor: \t 0\n");
    put(world, "/dev/nvidia0", "");
    put(world, "/dev/nvidia1", "");
    health_read(world->root, "box", &health);
    assert_int_equal(health.gpus.count, 2);
    assert_string_equal(health.gpus.items[0], "NVIDIA L4 (0000:17:00.0)");
    assert_string_equal(health.gpus.items[1], "NVIDIA A100-SXM4-40GB (0000:b1:00.0)");
    health_clear(&health);
}

static void test_adapters(void **state)
{
    const struct world *world = *state;
    struct health health;
    put(world, "/sys/class/infiniband/mlx5_1/ports/1/state", "1: DOWN\n");
    put(world, "/sys/class/infiniband/mlx5_0/ports/2/state", "4: ACTIVE\n");
    put(world, "/sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
    put(world, "/sys/class/infiniband/mlx5_0/ports/1/rate", "400 Gb/sec (4X NDR)\n");
    health_read(world->root, "box", &health);
    assert_int_equal(health.adapters.count, 3);
    assert_string_equal(health.adapters.items[0], "mlx5_0:1 ACTIVE 400 Gb/sec (4X NDR)");
    assert_string_equal(health.adapters.items[1], "mlx5_0:2 ACTIVE ");
    assert_string_equal(health.adapters.items[2], "mlx5_1:1 DOWN ");
    health_clear(&health);
}

static void test_folders(void **state)
{
    const struct world *world = *state;
    struct health health;
    setenv("TMPDIR", world->root, 1);
    health_read("", "box", &health);
    assert_string_equal(health.folders[0].what, "tmp");
    assert_string_equal(health.folders[0].path, world->root);
    assert_null(health.folders[0].problem);
    assert_true(health.folders[0].total_bytes > 0);
    assert_string_equal(health.folders[1].what, "shm");
    health_clear(&health);
    char *left = mem_printf("%s/hvdrun-%u", world->root, (unsigned)geteuid());
    assert_int_not_equal(access(left, F_OK), 0); /* what it tried is gone */
    free(left);

    char *file = mem_printf("%s/file", world->root);
    put(world, "/file", "");
    setenv("TMPDIR", file, 1);
    health_read("", "box", &health);
    assert_non_null(health.folders[0].problem);
    assert_non_null(strstr(health.folders[0].problem, "TMPDIR"));
    health_clear(&health);
    free(file);
}

static void test_hwloc_that_is_not_there(void **state)
{
    struct error err = ERROR_INIT;
    (void)state;
    assert_null(health_hwloc("/no/such/module.so", &err));
    assert_non_null(strstr(err.text, "/no/such/module.so"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_nothing_is_there, make_world, remove_world),
        cmocka_unit_test_setup_teardown(test_own_name, make_world, remove_world),
        cmocka_unit_test_setup_teardown(test_system, make_world, remove_world),
        cmocka_unit_test_setup_teardown(test_gpu_driver, make_world, remove_world),
        cmocka_unit_test_setup_teardown(test_gpus, make_world, remove_world),
        cmocka_unit_test_setup_teardown(test_adapters, make_world, remove_world),
        cmocka_unit_test_setup_teardown(test_folders, make_world, remove_world),
        cmocka_unit_test(test_hwloc_that_is_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
