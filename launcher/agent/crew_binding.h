/* SPDX-License-Identifier: Apache-2.0 */
/* The CPUs of a crew's workers (--bind-to and what goes with it) and the picture of them. */
#pragma once

#include "agent/crew_setup.h"

/* Fills setup->binding, setup->gpus and setup->pictures as PREPARE asks; reads nothing that it does
 * not ask for. -1: `err` says why the crew cannot start. */
int crew_binding_fill(struct crew_setup *setup, struct error *err);

/* Appends OMP_NUM_THREADS of a worker that is bound: its part of its cores. For where nobody else
 * has set it. */
void crew_binding_env(const struct crew_setup *setup, const Hvdrun__Worker *worker,
                      struct strv *hints);
