/* SPDX-License-Identifier: Apache-2.0 */
/* Where things are: the hosts of the job and its plan, our own modules, the job's name. */
#pragma once

#include "base/error.h"
#include "cli/command_line.h"
#include "model/plan.h"

/* From -H, --hostfile or this machine. The caller owns the plan. */
struct plan *place_plan(const struct command_line *line, struct error *err);

/* Its agent can be forked right away: without a question to a resolver it is this machine, or it is
 * to be taken for it. */
bool place_is_here(const struct settings *settings, const struct plan_node *node);

/* Warnings about options that are accepted but have no effect yet; an error for those that the job
 * cannot do without. */
int place_unsupported(const struct settings *settings, struct strv *warnings, struct error *err);

/* The folder that --output-filename needs exists afterwards. */
int place_output_folder(const struct settings *settings, struct error *err);

/* The folder of hvdrun-agent and hvdrun-*.so, seen from this executable: lib/hvdrun beside it or
 * beside its parent. The caller owns the results. */
char *place_modules(void);
char *place_here(void);   /* the working directory, as the user knows it */
char *place_job_id(void); /* "hvdrun-HOST-PID" */
