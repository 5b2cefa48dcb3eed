/* SPDX-License-Identifier: Apache-2.0 */
/* Where things are: the hosts of the job and its plan, our own modules, the job's name. */
#pragma once

#include "base/error.h"
#include "cli/command_line.h"
#include "model/plan.h"

/* From -H, --hostfile or this machine. Hosts that cannot be reached yet are an error. The caller
 * owns the plan. */
struct plan *place_plan(const struct command_line *line, struct error *err);

/* Warnings about options that are accepted but have no effect yet; an error for those that the job
 * cannot do without. */
int place_unsupported(const struct settings *settings, struct strv *warnings, struct error *err);

/* The folder that --output-filename needs exists afterwards. */
int place_output_folder(const struct settings *settings, struct error *err);

/* The folder of hvdrun-*.so, seen from this executable: lib/hvdrun beside it or beside its parent.
 * The caller owns both results. */
char *place_modules(void);
char *place_job_id(void); /* "hvdrun-HOST-PID" */
