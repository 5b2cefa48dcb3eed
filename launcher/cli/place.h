/* SPDX-License-Identifier: Apache-2.0 */
/* Where things are: the hosts of the job and its plan, our own modules, the job's name. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "cli/command_line.h"
#include "model/allocation/allocation.h"
#include "model/plan/plan.h"

/* The hosts of a job and who says so; to be opened into an all-zero struct, and closed. */
struct place {
    struct allocation allocation; /* of a scheduler; its kind is ALLOCATION_NONE without one */
    struct host_list hosts;       /* none: an elastic job, which finds them out */
    struct mapping mapping;       /* of the ranks over the hosts */
    bool allocated;               /* the hosts are those of the allocation, nobody chose them */
    struct plan_request request;  /* by which place_plan() made the plan; points into this struct */
};

/* From -H, --hostfile, the allocation, a rankfile or this machine, the first that there is; `env`
 * is that of the process. Hosts that the user names are checked against the allocation. -1: they
 * are wrong. The text of the error is empty where another process prints it (one of several of one
 * srun). */
int place_open(const struct command_line *line, char *const *env, struct place *place,
               struct error *err);
void place_close(struct place *place); /* accepts one that is all zero, or failed to open */

/* The plan for these hosts. The caller owns it. `late`: slots that nobody has said are counted when
 * the hosts are there (driver/start/late_plan.h); until then the plan stands for all hosts that may
 * take part. */
struct plan *place_plan(const struct command_line *line, struct place *place, bool late,
                        struct error *err);

/* Are there hosts whose slots nobody has said? */
bool place_is_vague(const struct place *place);

/* -1: what else was said cannot be said of an elastic job. */
int place_check_elastic(const struct command_line *line, struct error *err);

/* The folder that --output-filename needs exists afterwards. */
int place_output_folder(const struct settings *settings, struct error *err);

/* The folder of hvdrun-agent and hvdrun-*.so, seen from this executable: lib/hvdrun beside it or
 * beside its parent. The caller owns the results. */
char *place_modules(void);
char *place_here(void);   /* the working directory, as the user knows it */
char *place_job_id(void); /* "hvdrun-HOST-PID" */
