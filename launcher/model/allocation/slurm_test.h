/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of slurm alone. */
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "base/strv.h"
#include "model/allocation/slurm.h"

/* Appends every name, each checked by name_is_safe(). -1 and STATUS_USAGE: what is wrong with it;
 * more than HOSTS_RANGE_MAX names from ranges are too many. */
int slurm_nodelist_parse(const char *text, struct strv *names, struct error *err);
#define SLURM_COUNT_MAX 1000000

/* Fills `out` with exactly `nodes` numbers, each from 1 to SLURM_COUNT_MAX. Returns -1 and
 * STATUS_USAGE for a malformed list, and for a list for fewer or more nodes. */
int slurm_counts_parse(const char *text, int *out, size_t nodes, struct error *err);
