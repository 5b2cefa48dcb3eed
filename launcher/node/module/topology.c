/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hvdrun-topology.so: the machine's CPUs from hwloc. The only file that includes hwloc.
 *
 * Logical numbers are used for cores, memory nodes and packages: they are dense, differ over the
 * whole machine and follow hwloc's order, in which neighbours share the most.
 */
#include <hwloc.h>

#include "node/module/topology_module.h"

__attribute__((visibility("default"))) topology_module_read hvdrun_topology_read_1;

static int ancestor(hwloc_topology_t machine, hwloc_obj_t pu, hwloc_obj_type_t type, int missing)
{
    hwloc_obj_t object = hwloc_get_ancestor_obj_by_type(machine, type, pu);
    return object != NULL ? (int)object->logical_index : missing;
}

/* The first memory node whose CPUs include this one (memory nodes are no ancestors in hwloc 2). */
static int numa_of(hwloc_topology_t machine, hwloc_obj_t pu)
{
    hwloc_obj_t node = NULL;
    do {
        node = hwloc_get_next_obj_by_type(machine, HWLOC_OBJ_NUMANODE, node);
    } while (node != NULL &&
             (node->cpuset == NULL || !hwloc_bitmap_isset(node->cpuset, pu->os_index)));
    return node != NULL ? (int)node->logical_index : 0;
}

static void read_cpus(hwloc_topology_t machine, struct topology *out)
{
    hwloc_const_cpuset_t allowed = hwloc_topology_get_allowed_cpuset(machine);
    hwloc_cpuset_t own = hwloc_bitmap_dup(allowed);
    /* a synthetic machine has no affinity of ours */
    if (own != NULL && hwloc_topology_is_thissystem(machine) != 0)
        (void)hwloc_get_cpubind(machine, own, HWLOC_CPUBIND_PROCESS);
    hwloc_obj_t pu = NULL;
    for (;;) {
        pu = hwloc_get_next_obj_by_type(machine, HWLOC_OBJ_PU, pu);
        if (pu == NULL)
            break;
        int cpu = (int)pu->os_index;
        bool ours = hwloc_bitmap_isset(allowed, pu->os_index) != 0 &&
                    (own == NULL || hwloc_bitmap_isset(own, pu->os_index) != 0);
        topology_add(out, (struct topology_cpu){
                              .cpu = cpu,
                              .core = ancestor(machine, pu, HWLOC_OBJ_CORE, cpu),
                              .numa = numa_of(machine, pu),
                              .package = ancestor(machine, pu, HWLOC_OBJ_PACKAGE, 0),
                              .allowed = ours,
                          });
    }
    hwloc_bitmap_free(own);
}

int hvdrun_topology_read_1(struct topology *out, struct error *err)
{
    *out = (struct topology){0};
    hwloc_topology_t machine = NULL;
    if (hwloc_topology_init(&machine) < 0)
        return error_set(err, "hwloc cannot be initialized");
    /* CPUs of other cgroups are shown as not ours instead of being left out */
    bool loaded = hwloc_topology_set_flags(machine, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) == 0 &&
                  hwloc_topology_load(machine) == 0;
    if (loaded)
        read_cpus(machine, out);
    hwloc_topology_destroy(machine);
    if (!loaded)
        return error_set(err, "hwloc cannot read this machine's topology");
    return out->count > 0 ? 0 : error_set(err, "hwloc sees no CPU on this machine");
}
