/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slurm's compressed node lists: `n[1-3,7],gpu[001-003]`, `r[1-2]n[1-4]`. Pure. The order is that
 * of `scontrol show hostnames`.
 */
#pragma once

#include "base/error.h"
#include "base/strv.h"

/* Appends every name, each checked by name_is_safe(). -1 and STATUS_USAGE: what is wrong with it;
 * more than HOSTS_RANGE_MAX names from ranges are too many. */
int slurm_nodelist_parse(const char *text, struct strv *names, struct error *err);
