/* SPDX-License-Identifier: Apache-2.0 */
/* The CPUs and GPUs of a crew's workers (--bind-to and what goes with it) and the picture of them.
 */
#pragma once

#include "agent/crew_apps.h"
#include "agent/crew_config.h"
#include "base/error.h"
#include "model/binding/binding.h"
#include "wire/control.pb-c.h"

struct crew_binding {       /* all zero: no worker is bound */
    struct binding *cpus;   /* by slot; NULL: not bound */
    struct crew_gpus *gpus; /* NULL: nothing asks for them */
    struct strv pictures;   /* for READY */
};

/* Binds as PREPARE asks, and reads nothing that it does not ask for. `prepare` and `apps` are
 * borrowed until crew_binding_destroy(). -1: `err` says why the crew cannot start. */
int crew_binding_fill(struct crew_binding *out, const struct crew_config *config,
                      const Hvdrun__Prepare *prepare, const struct crew_apps *apps,
                      struct error *err);
void crew_binding_destroy(struct crew_binding *binding);

/* Appends OMP_NUM_THREADS of a worker that is bound: its share of its cores, unless the name is set
 * already. `cpu_quota` is that of the node, shared by `cpu_ranks` ranks. */
void crew_binding_env(const struct crew_binding *binding, int cpu_quota, int cpu_ranks,
                      const Hvdrun__Worker *worker, struct strv *hints);

struct crew_gpus;

/* Appends "NAME=value": to `own` what --gpus-per-proc gives the worker, to `hints` the names that
 * it gets unless they are set already. `gpus` may be NULL. */
void crew_gpus_env(const struct crew_gpus *gpus, const Hvdrun__Worker *worker, struct strv *own,
                   struct strv *hints);
