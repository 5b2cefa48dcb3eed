/* SPDX-License-Identifier: Apache-2.0 */
/* The module on machines that hwloc makes up, and the kernel's files from a folder written here. */
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
#include "node/facts.h"
#include "node/topology.h"

#ifdef HVDRUN_TOPOLOGY_MODULE
static void assert_pictures(enum bind_unit unit, const char *const *pictures, size_t ranks)
{
    struct topology topology;
    struct error err = ERROR_INIT;
    if (topology_read_module(HVDRUN_TOPOLOGY_MODULE, &topology, &err) < 0)
        fail_msg("%s", err.text);
    struct binding *binding = binding_create(&topology, unit, (int)ranks, &err);
    assert_non_null(binding);
    for (size_t i = 0; i < ranks; i++) {
        struct buf text AUTO_BUF = BUF_INIT(256);
        assert_int_equal(binding_picture(&topology, &binding->ranks[i], &text), 0);
        assert_string_equal(buf_text(&text), pictures[i]);
    }
    binding_destroy(binding);
    topology_destroy(&topology);
}

static void test_synthetic_machines(void **state)
{
    (void)state;
    setenv("HWLOC_SYNTHETIC", "package:2 core:2 pu:2", 1);
    assert_pictures(BIND_CORE,
                    (const char *const[]){"[BB/..][../..]", "[../BB][../..]", "[../..][BB/..]",
                                          "[../..][../BB]", "[BB/..][../..]"},
                    5);
    setenv("HWLOC_SYNTHETIC", "package:2 numa:2 core:1 pu:1", 1);
    assert_pictures(BIND_NUMA, (const char *const[]){"[B|.][.|.]", "[.|B][.|.]", "[.|.][B|.]"}, 3);
    setenv("HWLOC_SYNTHETIC", "pu:4", 1); /* no cores, no package: each CPU is a core */
    assert_pictures(BIND_CORE, (const char *const[]){"[B/././.]", "[./B/./.]"}, 2);
    unsetenv("HWLOC_SYNTHETIC");
}

static void test_this_machine(void **state)
{
    (void)state;
    struct topology by_hwloc, by_kernel;
    assert_int_equal(topology_read_module(HVDRUN_TOPOLOGY_MODULE, &by_hwloc, NULL), 0);
    assert_int_equal(topology_read_sysfs("/sys", &by_kernel, NULL), 0);
    assert_int_equal(by_hwloc.count, by_kernel.count);
    size_t size = 0, allowed = 0;
    cpu_set_t *set = facts_affinity(&size);
    for (size_t i = 0; i < by_hwloc.count; i++)
        allowed += by_hwloc.cpus[i].allowed;
    assert_int_equal(allowed, CPU_COUNT_S(size, set));
    free(set);
    topology_destroy(&by_hwloc);
    topology_destroy(&by_kernel);
}
#else
static void test_synthetic_machines(void **state)
{
    (void)state;
    fail_msg("built without the module: cmake/topology_module.cmake is not included");
}
#define test_this_machine test_synthetic_machines
#endif

static void test_without_module(void **state)
{
    (void)state;
    struct topology topology;
    struct error err = ERROR_INIT;
    assert_int_equal(topology_read_module("/nowhere/hvdrun-topology.so", &topology, &err), -1);
    assert_non_null(strstr(err.text, "/nowhere/hvdrun-topology.so"));
    assert_int_equal(topology_read("/nowhere/hvdrun-topology.so", &topology, &err), 0);
    assert_true(topology.count > 0);
    topology_destroy(&topology);
    assert_int_equal(topology_read(NULL, &topology, &err), 0);
    topology_destroy(&topology);
}

/* Makes the folders on the way, too. */
static void put_file(const char *root, const char *name, const char *text)
{
    char *path AUTO_FREE = mem_printf("%s/%s", root, name);
    for (char *slash = strchr(path + strlen(root) + 1, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(path, 0700);
        *slash = '/';
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
    close(fd);
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *ftw)
{
    (void)info;
    (void)kind;
    (void)ftw;
    return remove(path);
}

/* Two packages with equal core numbers, two nodes, hardware threads far apart. */
static void test_kernel_files(void **state)
{
    (void)state;
    char root[] = "/tmp/hvdrun-test-XXXXXX";
    assert_non_null(mkdtemp(root));
    struct topology topology;
    struct error err = ERROR_INIT;
    assert_int_equal(topology_read_sysfs(root, &topology, &err), -1);
    assert_non_null(strstr(err.text, "cpu/online"));
    put_file(root, "devices/system/cpu/online", "0-2,4-7\n"); /* 3 is off */
    for (int cpu = 0; cpu < 8; cpu++) {
        char *core AUTO_FREE = mem_printf("devices/system/cpu/cpu%d/topology/core_id", cpu);
        char *package AUTO_FREE =
            mem_printf("devices/system/cpu/cpu%d/topology/physical_package_id", cpu);
        put_file(root, core, cpu % 2 == 0 ? "0\n" : "5\n");
        put_file(root, package, cpu % 4 < 2 ? "0\n" : "1\n");
    }
    put_file(root, "devices/system/node/online", "0-1\n");
    put_file(root, "devices/system/node/node0/cpulist", "0-1,4-5\n");
    put_file(root, "devices/system/node/node1/cpulist", "2-3,6-7\n");
    assert_int_equal(topology_read_sysfs(root, &topology, &err), 0);
    static const int expected[][4] = {/* cpu, core, numa, package */
                                      {0, 0, 0, 0}, {4, 0, 0, 0}, {1, 1, 0, 0}, {5, 1, 0, 0},
                                      {2, 2, 1, 1}, {6, 2, 1, 1}, {7, 3, 1, 1}};
    assert_int_equal(topology.count, 7);
    for (size_t i = 0; i < 7; i++) {
        assert_int_equal(topology.cpus[i].cpu, expected[i][0]);
        assert_int_equal(topology.cpus[i].core, expected[i][1]);
        assert_int_equal(topology.cpus[i].numa, expected[i][2]);
        assert_int_equal(topology.cpus[i].package, expected[i][3]);
    }
    topology_destroy(&topology);
    put_file(root, "devices/system/cpu/online", "rubbish\n");
    assert_int_equal(topology_read_sysfs(root, &topology, &err), -1);
    topology_destroy(&topology);
    assert_int_equal(nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_synthetic_machines),
        cmocka_unit_test(test_this_machine),
        cmocka_unit_test(test_without_module),
        cmocka_unit_test(test_kernel_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
