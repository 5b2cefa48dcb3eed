/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which CPUs each worker of a node may use: --bind-to, --cpus-per-proc, --map-by numa and the CPU
 * lists of a rankfile. Pure.
 *
 * Workers are bound to cores by their slots (the local rank, in a static job). A core means all of
 * its CPUs (hardware threads) that we may use ourselves, so a limit from outside (taskset, a
 * cgroup, Slurm) holds. A core without a CPU that we may use does not count.
 *
 *   none   all of them
 *   core   the next free core; with --cpus-per-proc N of them, in one memory node or else in one
 *          package, if one has N free cores
 *   numa   the next memory node, beginning again after the last
 *   l3     as numa, by level 3 caches
 *   gpu    the cores near GPU i (with --gpus-per-proc N, near the N of the worker)
 *
 * With --cpus-per-proc the last three take only N free cores there. --map-by numa goes round the
 * memory nodes instead of filling one after the other. When there are more workers than cores, they
 * share them, beginning with the first core again.
 */
#pragma once

#include "base/error.h"
#include "model/binding/topology.h"
#include "model/settings/words.h"

/* All pointers are borrowed. */
struct binding_request {
    enum bind_unit unit;
    int slots;                      /* workers to be bound */
    int cpus_per_proc;              /* cores for each; 0: a whole unit */
    int gpus_per_proc;              /* GPUs of each; 0: GPU i, beginning again after the last */
    bool round_numa;                /* --map-by numa */
    char *const *cpu_lists;         /* by slot, of a rankfile; NULL or "": as the rest */
    const struct device_list *gpus; /* those that workers see, for BIND_GPU */
};

struct binding {
    struct cpu_mask *ranks; /* by slot */
    int *threads;           /* by slot: its share of its cores, at least 1 */
    size_t count;
    size_t cores;   /* that could be used */
    size_t sharing; /* workers that share a core, or one of their cpus_per_proc, with others */
    size_t far;     /* workers whose GPU is near none of our cores: bound to all of them */
    bool narrow;    /* there are fewer cores than cpus_per_proc */
};

/* NULL and an error: we may use no CPU; a list is wrong or names a core that is not ours
 * (STATUS_USAGE); BIND_GPU without a GPU (STATUS_USAGE). */
struct binding *binding_create(const struct topology *topology,
                               const struct binding_request *request, struct error *err);
void binding_destroy(struct binding *binding);

/* Adds to `mask` those CPUs of a rankfile's list of cores that we may use. Without a topology, it
 * only looks at the form of the text. Returns -1 and STATUS_USAGE when the text is wrong, or a core
 * does not exist or is not ours. */
int binding_cpus_parse(const char *text, const struct topology *topology, struct cpu_mask *mask,
                       struct error *err);
