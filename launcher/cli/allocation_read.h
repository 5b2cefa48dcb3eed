/* SPDX-License-Identifier: Apache-2.0 */
/* The allocation that the job may use: found by --scheduler and the environment, its file read. */
#pragma once

#include "base/error.h"
#include "model/allocation/allocation.h"
#include "model/settings/settings.h"

/* `out` is all zero; its kind stays ALLOCATION_NONE where there is none, or `--scheduler none` says
 * to ignore it. -1 and STATUS_USAGE: what is wrong with it, or the one that --scheduler names is
 * not there, or this is one of several launchers of one srun; then the text is empty in all but the
 * first of them. The caller destroys `out` in either case. */
int allocation_read(const struct settings *settings, char *const *env, struct allocation *out,
                    struct error *err);
