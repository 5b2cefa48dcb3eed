/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A machine as binding sees it: its CPUs in cores, caches, memory nodes and packages, and the
 * devices near them. Pure; room node reads it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

#define CPU_NUMBER_MAX 65535 /* of one CPU; the kernel's own limit is 8192 */

/* A set of CPUs, of any size, as sched_setaffinity(2) takes it. All zero is the empty set. */
struct cpu_mask {
    unsigned long *words;
    size_t bytes;
};
void cpu_mask_clear(struct cpu_mask *mask);        /* frees; the empty set afterwards */
void cpu_mask_set(struct cpu_mask *mask, int cpu); /* other numbers than 0..MAX are ignored */
bool cpu_mask_has(const struct cpu_mask *mask, int cpu);
int cpu_mask_count(const struct cpu_mask *mask);

/* Sets the CPUs of a list as the kernel writes them, 0-3,8; stops at anything else. */
void cpu_mask_set_list(struct cpu_mask *mask, const char *list);

/* Appends the CPUs as such a list; -1 when `out` is full. */
int cpu_mask_list(const struct cpu_mask *mask, struct buf *out);

/*
 * Devices that matter to a worker's place: GPUs, and ports of InfiniBand or RoCE adapters. Room
 * node finds them (gpus.h).
 */
enum device_kind { DEVICE_NVIDIA, DEVICE_AMD, DEVICE_NIC };

struct device {
    enum device_kind kind;
    char *name; /* of an adapter, "mlx5_0"; of a GPU its id, "GPU-...", NULL: not known */
    char *pci;  /* "0000:17:00.0"; NULL: not known */
    char *path; /* the bridges above it, then itself: "pci0000:15/0000:15:01.0/0000:16:00.0/...";
                 * NULL: not known */
    int number; /* of an adapter its port, from 1; of an AMD GPU its node in the driver's list, by
                 * which ROCm orders them; else 0 */
    int numa;   /* memory node as the kernel numbers it; -1: not known */
    struct cpu_mask cpus; /* near it; empty: not known */
};

/* All zero is an empty list. GPUs are in the order of their PCI addresses, as nvidia-smi shows
 * them, and CUDA too among equal GPUs. Those of AMD are in the order of their numbers. */
struct device_list {
    struct device *items;
    size_t count;
};

/* Deep; what `to` had is not freed. */
void device_copy(struct device *to, const struct device *from);

/* Takes over what `device` points to. */
void device_list_add(struct device_list *list, const struct device *device);
void device_list_sort(struct device_list *list); /* as above */
void device_list_destroy(struct device_list *list);

/* How many bridges and devices lie between the two; -1 when that is not known, or they have no
 * bridge in common. */
int device_distance(const struct device *one, const struct device *other);

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

/*
 * The network adapter nearest to a GPU, for --nic-hints: by the number of PCI bridges between, then
 * by the memory node. GPUs that are equally near to several adapters take turns, so four GPUs and
 * four adapters of a socket use all four.
 */

/* NULL: no adapter is known to be near. Borrowed from `nics`. */
const struct device *nic_near(const struct device_list *nics, const struct device_list *gpus,
                              size_t gpu);

/* The values for NCCL ("=mlx5_0:1,mlx5_3:1") and UCX ("mlx5_0:1,mlx5_3:1") of a worker that has
 * `count` GPUs from `first` on, each adapter once; appends nothing without one. */
void nic_near_values(const struct device_list *nics, const struct device_list *gpus, size_t first,
                     size_t count, struct buf *nccl, struct buf *ucx);
