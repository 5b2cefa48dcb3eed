/* SPDX-License-Identifier: Apache-2.0 */
/* Slurm's variables: an allocation, and what a step says. Pure. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "model/allocation/source.h"

/* Are the variables of this scheduler set? `*file` becomes the file that they name, borrowed from
 * `env`; it is not changed when they name none. */
bool allocation_slurm_has(char *const *env, const char **file);
/* Fills hosts, np and what else the scheduler says; the caller checks that there are hosts. */
int allocation_slurm_parse(const struct allocation_source *source, struct allocation *out,
                           struct error *err);

/* Which one of several tasks of one step this process is, so that as many launchers run. -1: it is
 * not one of several. */
int allocation_slurm_twin(char *const *env);
