/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A machine as binding sees it: its CPUs in cores, caches, memory nodes and packages, and the
 * devices near them. Pure; room node reads it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "model/binding/device.h"

/* One CPU (hardware thread) as the kernel numbers it. The other numbers are equal for CPUs that
 * share the part and differ otherwise, over the whole machine. */
struct topology_cpu {
    int cpu, core, l3, numa, package;
    bool allowed;
};

/* CPUs in the machine's order: those of a core, cache, memory node and package are adjacent. */
struct topology {
    struct topology_cpu *cpus;
    size_t count;
    struct device_list gpus, nics;
    bool simulated; /* described by HWLOC_SYNTHETIC or HWLOC_XMLFILE: another machine than this */
};

/* A CPU with a negative number is ignored. */
void topology_add(struct topology *topology, struct topology_cpu cpu);
/* Sorts by package, memory node, cache, core, CPU: for sources that give them in another order. */
void topology_sort(struct topology *topology);
void topology_destroy(struct topology *topology);
