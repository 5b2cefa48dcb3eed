/* SPDX-License-Identifier: Apache-2.0 */
/* Where things are: the hosts of the job and its plan, hvdrun's modules, the job's name. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"
#include "cli/command_line.h"
#include "model/allocation/allocation.h"
#include "model/hosts/hosts.h"
#include "model/plan/plan.h"

/* The hosts of a job, and where they come from. Open it into an all-zero struct, and close it. */
struct place {
    struct allocation allocation; /* of a scheduler; its kind is ALLOCATION_NONE without one */
    struct host_list hosts;       /* empty: an elastic job that discovers its hosts */
    struct mapping mapping;       /* of the ranks to the hosts */
    bool allocated;     /* the hosts are all those of the allocation: no option chose them */
    char *bad_hosts;    /* the text of --bad-hosts; NULL: none */
    char *left_out;     /* which hosts are not used, and why; NULL: none */
    const char *remedy; /* for that */
    struct plan_request request; /* of place_plan(); points into this struct */
};

/* Takes the hosts from the first of these that the job has: -H, --hostfile, the allocation, a
 * rankfile, this machine. Checks hosts of the user against the allocation. `env` is the environment
 * of the process. -1: the hosts are wrong. The error has no text if another process prints it (one
 * srun has started several launchers). */
int place_open(const struct command_line *line, char *const *env, struct place *place,
               struct error *err);
/* After some were left out of hosts that had `before` slots. -1: the rest does not suffice. */
int place_suffices(const struct command_line *line, const struct place *place, int before,
                   struct error *err);
void place_close(struct place *place); /* accepts one that is all zero, or failed to open */

/* The plan for these hosts. The caller owns it. `late`: if a host has no slot count, the driver
 * counts its slots when the host is up (driver/start/static_kind.c). Until then, the plan has all
 * hosts that may take part. */
struct plan *place_plan(const struct command_line *line, struct place *place, bool late,
                        struct error *err);

/* How many of these this machine has: GPUs, CPUs, or GPUs and else CPUs. */
int place_count(enum map_each each);

/* Are there hosts without a slot count? */
bool place_is_vague(const struct place *place);

/* -1: an option is set that an elastic job does not support. */
int place_check_elastic(const struct command_line *line, struct error *err);

/* The folder of hvdrun-agent and hvdrun-*.so: lib/hvdrun in the folder of this executable, or in
 * the folder above. The caller owns the results of these three functions. */
char *place_modules(void);
char *place_here(void);   /* the working directory, by the path that the user's shell has */
char *place_job_id(void); /* "hvdrun-HOST-PID" */

/*
 * --leave-out-bad: before the job starts, another process checks its hosts and GPUs, as `hvdrun
 * check --gpu` does. Hosts with a problem or a bad GPU are left out of the job.
 */

/* Runs the check of `line` in this process, and writes its result to stdout. It returns the exit
 * status, or -1. */
typedef int preflight_check(void *context, const struct command_line *line, struct error *err);

/* Removes hosts, and appends to `told` which ones and why. Waits until the check is over: it has
 * its own time limits. -1: there was no result. */
int preflight_leave_out(const struct command_line *line, preflight_check *check, void *context,
                        struct host_list *hosts, struct buf *told, struct error *err);
