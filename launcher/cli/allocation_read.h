/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the allocation of a scheduler that the job may use, and reads its file. */
#pragma once

#include "base/error.h"
#include "model/allocation/allocation.h"
#include "model/settings/settings.h"

/* Looks for the allocation in `env`, as --scheduler says. `out` must be all zero. Its kind stays
 * ALLOCATION_NONE if there is no allocation, or with `--scheduler none`.
 * Returns -1 with STATUS_USAGE in three cases: the allocation is wrong, there is none of the kind
 * that --scheduler names, or one srun has started several launchers. In the last case only the
 * first launcher gets a text, so that the message appears once. The caller destroys `out` in any
 * case. */
int allocation_read(const struct settings *settings, char *const *env, struct allocation *out,
                    struct error *err);
