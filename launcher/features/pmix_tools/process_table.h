/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes of a job for PMIx tools, from what the driver says of it
 * (driver/tell/status_json.h). Nothing of that is taken for granted. Pure.
 */
#pragma once

#include <jansson.h>
#include <sys/types.h>

#include "base/error.h"
#include "pmix/pmix_module.h"

struct process_table {
    char *job;     /* its id, which is the namespace of all rows */
    char *program; /* "": not known, as a job can have several */
    pid_t driver;
    struct pmix_process *rows; /* by rank; they own their hosts */
    size_t count;
};

/* -1: that is not the status of a job. */
int process_table_read(struct process_table *table, const json_t *status, struct error *err);
void process_table_clear(struct process_table *table); /* accepts one that is all zero */
