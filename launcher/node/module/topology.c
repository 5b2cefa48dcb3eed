/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hvdrun-topology.so: the machine's CPUs from hwloc. The only file that includes hwloc.
 *
 * Logical numbers are used for cores, caches, memory nodes and packages: they are dense, differ
 * over the whole machine and follow hwloc's order, in which neighbours share the most.
 *
 * Devices are taken from hwloc only where HWLOC_XMLFILE describes another machine: on this one,
 * looking for them takes hwloc's plugins long, and room node does it better.
 */
#include <hwloc.h>
#include <stdlib.h>

#include "base/mem.h"
#include "node/module/topology_module.h"

#define VENDOR_NVIDIA 0x10de
#define VENDOR_AMD 0x1002
#define CLASS_DISPLAY 0x03

static int ancestor(hwloc_topology_t machine, hwloc_obj_t pu, hwloc_obj_type_t type, int missing)
{
    hwloc_obj_t object = hwloc_get_ancestor_obj_by_type(machine, type, pu);
    return object != NULL ? (int)object->logical_index : missing;
}

/* The first memory node whose CPUs include this one (memory nodes are not ancestors in hwloc 2). */
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
    /* a simulated machine has no affinity of ours */
    if (own != NULL && !out->simulated)
        (void)hwloc_get_cpubind(machine, own, HWLOC_CPUBIND_PROCESS);
    hwloc_obj_t pu = NULL;
    for (;;) {
        pu = hwloc_get_next_obj_by_type(machine, HWLOC_OBJ_PU, pu);
        if (pu == NULL)
            break;
        int cpu = (int)pu->os_index, numa = numa_of(machine, pu);
        bool ours = hwloc_bitmap_isset(allowed, pu->os_index) != 0 &&
                    (own == NULL || hwloc_bitmap_isset(own, pu->os_index) != 0);
        topology_add(out, (struct topology_cpu){
                              .cpu = cpu,
                              .core = ancestor(machine, pu, HWLOC_OBJ_CORE, cpu),
                              .l3 = ancestor(machine, pu, HWLOC_OBJ_L3CACHE, -1 - numa),
                              .numa = numa,
                              .package = ancestor(machine, pu, HWLOC_OBJ_PACKAGE, 0),
                              .allowed = ours,
                          });
    }
    hwloc_bitmap_free(own);
}

static char *address_of(const struct hwloc_pcidev_attr_s *pci)
{
    return mem_printf("%04x:%02x:%02x.%x", (unsigned)pci->domain, (unsigned)pci->bus,
                      (unsigned)pci->dev, (unsigned)pci->func);
}

/* The bridges above a PCI device and itself, as its folder in /sys would be. */
static char *path_of(hwloc_obj_t object)
{
    char *path = NULL;
    for (; object != NULL; object = object->parent) {
        char *below AUTO_FREE = path, *name AUTO_FREE = NULL;
        const union hwloc_obj_attr_u *attr = object->attr;
        bool bridge = object->type == HWLOC_OBJ_BRIDGE;
        path = NULL;
        if (bridge && attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_HOST)
            name = mem_printf("pci%04x:%02x", (unsigned)attr->bridge.downstream.pci.domain,
                              (unsigned)attr->bridge.downstream.pci.secondary_bus);
        else if (bridge)
            name = address_of(&attr->bridge.upstream.pci);
        else if (object->type == HWLOC_OBJ_PCI_DEVICE)
            name = address_of(&attr->pcidev);
        else
            return mem_strdup(below);
        path = below == NULL ? mem_strdup(name) : mem_printf("%s/%s", name, below);
    }
    return path;
}

static void locate(hwloc_topology_t machine, hwloc_obj_t pci, struct device *device)
{
    hwloc_obj_t near = hwloc_get_non_io_ancestor_obj(machine, pci);
    device->pci = address_of(&pci->attr->pcidev);
    device->path = path_of(pci);
    device->numa = -1;
    if (near == NULL || near->cpuset == NULL)
        return;
    if (near->nodeset != NULL && hwloc_bitmap_weight(near->nodeset) == 1)
        device->numa = hwloc_bitmap_first(near->nodeset);
    for (int cpu = hwloc_bitmap_first(near->cpuset); cpu >= 0;
         cpu = hwloc_bitmap_next(near->cpuset, cpu))
        cpu_mask_set(&device->cpus, cpu);
}

static void read_devices(hwloc_topology_t machine, struct topology *out)
{
    for (hwloc_obj_t at = hwloc_get_next_pcidev(machine, NULL); at != NULL;
         at = hwloc_get_next_pcidev(machine, at)) {
        const struct hwloc_pcidev_attr_s *pci = &at->attr->pcidev;
        struct device device = {.kind = pci->vendor_id == VENDOR_AMD ? DEVICE_AMD : DEVICE_NVIDIA,
                                .number = (int)out->gpus.count};
        if (pci->class_id >> 8 != CLASS_DISPLAY ||
            (pci->vendor_id != VENDOR_NVIDIA && pci->vendor_id != VENDOR_AMD))
            continue;
        locate(machine, at, &device);
        device_list_add(&out->gpus, &device);
    }
    for (hwloc_obj_t at = hwloc_get_next_osdev(machine, NULL); at != NULL;
         at = hwloc_get_next_osdev(machine, at)) {
        if (at->attr->osdev.type != HWLOC_OBJ_OSDEV_OPENFABRICS || at->parent == NULL ||
            at->parent->type != HWLOC_OBJ_PCI_DEVICE)
            continue;
        struct device device = {.kind = DEVICE_NIC, .name = mem_strdup(at->name), .number = 1};
        locate(machine, at->parent, &device);
        device_list_add(&out->nics, &device);
    }
    device_list_sort(&out->gpus);
    device_list_sort(&out->nics);
}

static int read_topology(struct topology *out, struct error *err)
{
    *out = (struct topology){0};
    hwloc_topology_t machine = NULL;
    if (hwloc_topology_init(&machine) < 0)
        return error_set(err, "hwloc cannot be initialized");
    if (getenv("HWLOC_XMLFILE") != NULL)
        (void)hwloc_topology_set_io_types_filter(machine, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    /* CPUs of other cgroups are shown as not ours instead of being left out */
    bool loaded = hwloc_topology_set_flags(machine, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) == 0 &&
                  hwloc_topology_load(machine) == 0;
    if (loaded) {
        out->simulated = hwloc_topology_is_thissystem(machine) == 0;
        read_cpus(machine, out);
    }
    if (loaded && out->simulated)
        read_devices(machine, out);
    hwloc_topology_destroy(machine);
    if (!loaded)
        return error_set(err, "hwloc cannot read this machine's topology");
    return out->count > 0 ? 0 : error_set(err, "hwloc sees no CPU on this machine");
}

__attribute__((visibility("default"))) extern const struct topology_module hvdrun_topology;
const struct topology_module hvdrun_topology = {TOPOLOGY_MODULE_VERSION, read_topology};
