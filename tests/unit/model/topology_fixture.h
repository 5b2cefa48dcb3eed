/* SPDX-License-Identifier: Apache-2.0 */
/* Machines for the tests of bindings. */
#pragma once

#include "model/binding/topology.h"

/* How many of each part are in the one before; 0 caches: none is known. */
struct machine {
    int packages, numas, caches, cores, threads;
};

/* The second threads of the cores are numbered behind all first ones, as on most machines. */
static inline void make_machine(struct topology *topology, struct machine is)
{
    int caches = is.caches > 0 ? is.caches : 1;
    int cores = is.packages * is.numas * caches * is.cores;
    *topology = (struct topology){0};
    for (int core = 0; core < cores; core++) {
        int l3 = core / is.cores, numa = l3 / caches;
        for (int thread = 0; thread < is.threads; thread++)
            topology_add(topology, (struct topology_cpu){.cpu = core + cores * thread,
                                                         .core = core,
                                                         .l3 = is.caches > 0 ? l3 : -1 - numa,
                                                         .numa = numa,
                                                         .package = numa / is.numas,
                                                         .allowed = true});
    }
}

static inline void forbid(struct topology *topology, int first, int last)
{
    for (size_t i = 0; i < topology->count; i++) {
        if (topology->cpus[i].cpu >= first && topology->cpus[i].cpu <= last)
            topology->cpus[i].allowed = false;
    }
}

/* A GPU near the CPUs of a list. */
static inline void add_gpu(struct device_list *gpus, const char *cpus)
{
    struct device gpu = {.kind = DEVICE_NVIDIA, .numa = -1};
    cpu_mask_set_list(&gpu.cpus, cpus);
    device_list_add(gpus, &gpu);
}
