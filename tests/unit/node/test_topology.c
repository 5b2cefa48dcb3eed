/* SPDX-License-Identifier: Apache-2.0 */
/* The module on machines that hwloc makes up, and the kernel's files from a folder written here. */
#include "fake_root.h"
#include "model/binding/binding.h"
#include "model/binding/picture.h"
#include "model/binding/topology.h"
#include "node/facts.h"
#include "node/topology.h"

#ifdef HVDRUN_TOPOLOGY_MODULE
static void read_machine(struct topology *topology)
{
    struct error err = ERROR_INIT;
    if (topology_read_module(HVDRUN_TOPOLOGY_MODULE, topology, &err) < 0)
        fail_msg("%s", err.text);
    assert_true(topology->simulated);
}

/* Binds as many workers as there are pictures, which end with NULL. */
static void assert_pictures(const struct topology *topology, struct binding_request request,
                            const char *const *pictures)
{
    struct error err = ERROR_INIT;
    while (pictures[request.slots] != NULL)
        request.slots++;
    struct binding *binding = binding_create(topology, &request, &err);
    if (binding == NULL)
        fail_msg("%s", err.text);
    for (int i = 0; i < request.slots; i++) {
        struct buf text AUTO_BUF = BUF_INIT(256);
        assert_int_equal(binding_picture(topology, &binding->ranks[i], &text), 0);
        assert_string_equal(buf_text(&text), pictures[i]);
    }
    binding_destroy(binding);
}

static void assert_synthetic(const char *machine, enum bind_unit unit, const char *const *pictures)
{
    struct topology topology;
    setenv("HWLOC_SYNTHETIC", machine, 1);
    read_machine(&topology);
    unsetenv("HWLOC_SYNTHETIC");
    assert_int_equal(topology.gpus.count, 0);
    assert_pictures(&topology, (struct binding_request){.unit = unit}, pictures);
    topology_destroy(&topology);
}
#define PICTURES(...) ((const char *const[]){__VA_ARGS__, NULL})

static void test_synthetic_machines(void **state)
{
    (void)state;
    assert_synthetic("package:2 core:2 pu:2", BIND_CORE,
                     PICTURES("[B.][..]", "[.B][..]", "[..][B.]", "[..][.B]", "[B.][..]"));
    assert_synthetic(
        "package:2 numa:2 core:4 pu:2", BIND_NUMA,
        PICTURES("[BBBB|....][....|....]", "[....|BBBB][....|....]", "[....|....][BBBB|....]"));
    assert_synthetic("package:2 numa:2 core:1 pu:1", BIND_NUMA,
                     PICTURES("[B|.][.|.]", "[.|B][.|.]", "[.|.][B|.]"));
    assert_synthetic("package:2 [numa] l3:2 core:2 pu:1", BIND_L3,
                     PICTURES("[BB/..][../..]", "[../BB][../..]", "[../..][BB/..]",
                              "[../..][../BB]", "[BB/..][../..]"));
    assert_synthetic("package:1 [numa] core:1 pu:1", BIND_L3, PICTURES("[B]", "[B]"));
    /* no cores, no package: each CPU is a core */
    assert_synthetic("pu:4", BIND_CORE, PICTURES("[B...]", "[.B..]"));
}

/* data/eight_gpus.xml: 2 packages, below each 4 switches with a GPU and an adapter, and two more
 * adapters far from all GPUs. */
static void test_eight_gpus(void **state)
{
    (void)state;
    static const char *const nearest[] = {"mlx5_0", "mlx5_3", "mlx5_4",  "mlx5_5",
                                          "mlx5_6", "mlx5_9", "mlx5_10", "mlx5_11"};
    struct topology topology;
    const char *source = getenv("HVDRUN_SOURCE");
    if (source == NULL)
        fail_msg("HVDRUN_SOURCE does not name the source tree");
    char *file AUTO_FREE = mem_printf("%s/tests/unit/node/data/eight_gpus.xml", source);
    setenv("HWLOC_XMLFILE", file, 1);
    read_machine(&topology);
    unsetenv("HWLOC_XMLFILE");
    assert_int_equal(topology.count, 64);
    assert_int_equal(topology.gpus.count, 8);
    assert_int_equal(topology.nics.count, 12);
    assert_string_equal(topology.gpus.items[0].path, "pci0000:15/0000:15:01.0/0000:16:00.0/"
                                                     "0000:17:02.0/0000:1b:00.0");
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(topology.gpus.items[i].numa, (int)i / 4);
        assert_string_equal(nic_near(&topology.nics, &topology.gpus, i)->name, nearest[i]);
    }
    const struct binding_request near = {
        .unit = BIND_GPU, .gpus = &topology.gpus, .cpus_per_proc = 4};
    assert_pictures(
        &topology, near,
        PICTURES("[BBBB............][................]", "[....BBBB........][................]",
                 "[........BBBB....][................]", "[............BBBB][................]",
                 "[................][BBBB............]", "[................][....BBBB........]",
                 "[................][........BBBB....]", "[................][............BBBB]"));
    topology_destroy(&topology);
}

static void test_this_machine(void **state)
{
    (void)state;
    struct topology by_hwloc, by_kernel;
    assert_int_equal(topology_read_module(HVDRUN_TOPOLOGY_MODULE, &by_hwloc, NULL), 0);
    assert_int_equal(topology_read_sysfs("/sys", &by_kernel, NULL), 0);
    assert_int_equal(by_hwloc.count, by_kernel.count);
    assert_false(by_hwloc.simulated || by_kernel.simulated);
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
#define test_eight_gpus test_synthetic_machines
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

/* Two packages with equal core numbers, two nodes, hardware threads far apart. */
static void test_kernel_files(void **state)
{
    (void)state;
    char root[] = FAKE_ROOT;
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
        char *level AUTO_FREE = mem_printf("devices/system/cpu/cpu%d/cache/index3/level", cpu);
        char *shared AUTO_FREE =
            mem_printf("devices/system/cpu/cpu%d/cache/index3/shared_cpu_list", cpu);
        if (cpu % 4 >= 2) /* package 1 has none */
            continue;
        put_file(root, level, "3\n");
        put_file(root, shared, cpu % 2 == 0 ? "0,4\n" : "1,5\n");
    }
    put_file(root, "devices/system/node/online", "0-1\n");
    put_file(root, "devices/system/node/node0/cpulist", "0-1,4-5\n");
    put_file(root, "devices/system/node/node1/cpulist", "2-3,6-7\n");
    assert_int_equal(topology_read_sysfs(root, &topology, &err), 0);
    static const int expected[][5] = {/* cpu, core, l3, numa, package */
                                      {0, 0, 0, 0, 0}, {4, 0, 0, 0, 0},  {1, 1, 1, 0, 0},
                                      {5, 1, 1, 0, 0}, {2, 2, -3, 1, 1}, {6, 2, -3, 1, 1},
                                      {7, 3, -3, 1, 1}};
    assert_int_equal(topology.count, 7);
    for (size_t i = 0; i < 7; i++) {
        assert_int_equal(topology.cpus[i].cpu, expected[i][0]);
        assert_int_equal(topology.cpus[i].core, expected[i][1]);
        assert_int_equal(topology.cpus[i].l3, expected[i][2]);
        assert_int_equal(topology.cpus[i].numa, expected[i][3]);
        assert_int_equal(topology.cpus[i].package, expected[i][4]);
    }
    topology_destroy(&topology);
    put_file(root, "devices/system/cpu/online", "rubbish\n");
    assert_int_equal(topology_read_sysfs(root, &topology, &err), -1);
    topology_destroy(&topology);
    fake_remove(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_synthetic_machines), cmocka_unit_test(test_eight_gpus),
        cmocka_unit_test(test_this_machine),       cmocka_unit_test(test_without_module),
        cmocka_unit_test(test_kernel_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
