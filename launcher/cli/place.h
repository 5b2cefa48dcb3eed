/* SPDX-License-Identifier: Apache-2.0 */
/* Where things are: the hosts of the job and its plan, our own modules, the job's name. */
#pragma once

#include "base/error.h"
#include "cli/command_line.h"
#include "model/plan.h"

/* From -H, --hostfile or this machine. The caller owns the plan. */
struct plan *place_plan(const struct command_line *line, struct error *err);

/* Of an elastic job: as named, or none when they are to be found out. -1: it cannot be elastic, or
 * the names are wrong. */
int place_elastic_hosts(const struct command_line *line, struct host_list *hosts,
                        struct error *err);

/* The folder that --output-filename needs exists afterwards. */
int place_output_folder(const struct settings *settings, struct error *err);

/* The folder of hvdrun-agent and hvdrun-*.so, seen from this executable: lib/hvdrun beside it or
 * beside its parent. The caller owns the results. */
char *place_modules(void);
char *place_here(void);   /* the working directory, as the user knows it */
char *place_job_id(void); /* "hvdrun-HOST-PID" */
