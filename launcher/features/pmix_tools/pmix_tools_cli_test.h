/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes of a job for PMIx tools, from what the driver says of it
 * (driver/tell/tell.h). Only tests call these from outside.
 *
 * Ranks have the namespace that PMIx gives them, with their rank there. So have those of a job
 * without PMIx. A rank that has not started, or could not, is not in the table.
 */
#pragma once

#include <jansson.h>

#include "base/error.h"
#include "pmix/pmix_module.h"

/* -1: that is not the status of a job. */
int process_table_read(struct pmix_table *table, const json_t *status, struct error *err);
void process_table_clear(struct pmix_table *table); /* accepts one that is all zero */
