/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which CPUs a worker may use: --bind-to core|numa, and the picture of --report-bindings. Pure.
 *
 * Policy: local rank i gets the i-th core (or memory node) that has at least one CPU we may use,
 * counted round and round when there are more ranks than places; of its place it gets every CPU
 * that we may use ourselves, so a limit set from outside (taskset, a container, Slurm) holds.
 *
 * The picture has one letter per CPU: B bound, . free for us, x not ours. Cores are divided by `/`,
 * memory nodes of a package by `|`, each package stands in brackets: [BB/..][../xx].
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"

/* One CPU (hardware thread) as the kernel numbers it. `core`, `numa` and `package` are numbers that
 * are equal for CPUs that share one and differ otherwise, over the whole machine. */
struct topology_cpu {
    int cpu, core, numa, package;
    bool allowed;
};

/* CPUs in the machine's order: those of a core, memory node and package stand together. */
struct topology {
    struct topology_cpu *cpus;
    size_t count;
};

/* A CPU with a negative number is ignored. */
void topology_add(struct topology *topology, struct topology_cpu cpu);
/* Sorts by package, memory node, core, CPU: for sources that give them in another order. */
void topology_sort(struct topology *topology);
void topology_destroy(struct topology *topology);

#define BIND_UNIT_LIST(X) \
    X(BIND_NONE, "none")  \
    X(BIND_CORE, "core")  \
    X(BIND_NUMA, "numa")

enum bind_unit {
#define BIND_UNIT_ENUM(name, text) name,
    BIND_UNIT_LIST(BIND_UNIT_ENUM)
#undef BIND_UNIT_ENUM
};

/* For sched_setaffinity(pid, bytes, (cpu_set_t *)words). */
struct cpu_mask {
    unsigned long *words;
    size_t bytes;
};

struct binding {
    struct cpu_mask *ranks; /* by local rank */
    size_t count;
    size_t places; /* cores or memory nodes that could be used; fewer than ranks: shared */
};

/* NULL and an error when no CPU may be used. With BIND_NONE every rank gets all allowed CPUs. */
struct binding *binding_create(const struct topology *topology, enum bind_unit unit, int local_size,
                               struct error *err);
void binding_destroy(struct binding *binding);

bool cpu_mask_has(const struct cpu_mask *mask, int cpu);
int cpu_mask_count(const struct cpu_mask *mask);

/* Appends the picture of one mask; -1 when `out` is full. */
int binding_picture(const struct topology *topology, const struct cpu_mask *mask, struct buf *out);
/* Appends the CPUs as a list: 0-3,8. */
int binding_list(const struct cpu_mask *mask, struct buf *out);
