/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slurm's compressed lists of one number for each node: `2(x3),1` is 2, 2, 2, 1. Pure.
 */
#pragma once

#include <stddef.h>

#include "base/error.h"

#define SLURM_COUNT_MAX 1000000

/* Fills `out` with exactly `nodes` numbers, each from 1 to SLURM_COUNT_MAX. Returns -1 and
 * STATUS_USAGE for a malformed list, and for a list for fewer or more nodes. */
int slurm_counts_parse(const char *text, int *out, size_t nodes, struct error *err);
