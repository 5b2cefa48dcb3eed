/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which CPUs each worker of a node may use: --bind-to, --cpus-per-proc, --map-by numa and the CPU
 * lists of a rankfile. Pure.
 *
 * Workers are bound by their slots (the local rank, in a static job), to cores: a core is all of
 * its CPUs (hardware threads) that we may use ourselves, so a limit from outside (taskset, a
 * cgroup, Slurm) holds. A core of which we may use no CPU is none.
 *
 *   none   all of them
 *   core   the next core that nobody has; N of them with --cpus-per-proc: in one memory node, or
 *          else one package, if one has so many left
 *   numa   memory node after memory node, round and round
 *   l3     as numa, by level 3 caches
 *   gpu    the cores near GPU i (with --gpus-per-proc N, near the N of the worker)
 *
 * With --cpus-per-proc the last three take only N cores there, which nobody has. --map-by numa
 * goes round the memory nodes instead of filling one after the other. More workers than there are
 * cores share them, beginning with the first again.
 */
#pragma once

#include "base/error.h"
#include "model/binding/topology.h"
#include "model/settings/words.h"

/* All pointers are borrowed. */
struct binding_request {
    enum bind_unit unit;
    int slots;              /* workers to be bound */
    int cpus_per_proc;      /* cores for each; 0: a whole unit */
    int gpus_per_proc;      /* GPUs of each; 0: GPU i, round and round */
    bool round_numa;        /* --map-by numa */
    char *const *cpu_lists; /* by slot, of a rankfile (binding_cpus.h); NULL or "": as the rest */
    const struct device_list *gpus; /* those that workers see, for BIND_GPU */
};

struct binding {
    struct cpu_mask *ranks; /* by slot */
    int *threads;           /* by slot: its share of its cores, at least 1 */
    size_t count;
    size_t cores;   /* that could be used */
    size_t sharing; /* workers that have not a core, or cpus_per_proc of them, to themselves */
    size_t far;     /* workers whose GPU is near none of our cores: bound to all of them */
    bool narrow;    /* there are fewer cores than cpus_per_proc */
};

/* NULL and an error: no CPU may be used; a list that is wrong or names what is not ours
 * (STATUS_USAGE); BIND_GPU without a GPU (STATUS_USAGE). */
struct binding *binding_create(const struct topology *topology,
                               const struct binding_request *request, struct error *err);
void binding_destroy(struct binding *binding);
