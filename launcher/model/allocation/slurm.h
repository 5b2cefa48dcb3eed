/* SPDX-License-Identifier: Apache-2.0 */
/* Slurm: the variables of an allocation and of a step, and its record of a job. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/allocation/source.h"

/* slurm.c: the variables. */

/* Are the variables of this scheduler set? `*file` becomes the file that they name, borrowed from
 * `env`; it is not changed when they name none. */
bool allocation_slurm_has(char *const *env, const char **file);
/* Fills hosts, np and what else the scheduler says; the caller checks that there are hosts. */
int allocation_slurm_parse(const struct allocation_source *source, struct allocation *out,
                           struct error *err);

/* Which one of several tasks of one step this process is, so that as many launchers run. -1: it is
 * not one of several. */
int allocation_slurm_twin(char *const *env);

/*
 * slurm_job.c: the fields of `scontrol show job -o` on which the end of our job depends.
 *
 * Times are expected as scontrol prints them with TZ=UTC0 and SLURM_TIME_FORMAT=standard, or in
 * seconds since 1970.
 */

struct slurm_job {
    char state[32];  /* "RUNNING", "TIMEOUT"...; "COMPLETING" while an end of any kind goes on */
    char reason[32]; /* "TimeLimit"...; "None" */
    int64_t end_s;   /* seconds since 1970; 0: no end is known */
    bool preempted;  /* another job gets its nodes at its end */
    bool batch;      /* it has a script, without which it cannot be requeued */
    bool requeue;    /* it may be requeued */
};

/* Reads the first job in `bytes`. -1: they do not have the state of a job. */
int slurm_job_parse(const char *bytes, size_t length, struct slurm_job *out, struct error *err);

/* Slurm itself ends the job, for its time limit or its nodes; no user has cancelled it. */
bool slurm_job_is_ousted(const struct slurm_job *job);

/* Slurm has not begun to end it. Slurm may be sending it a signal. */
bool slurm_job_runs(const struct slurm_job *job);

/* "2026-11-21T10:39:00" (UTC) or digits; 0: "Unknown", "None", or no time at all. */
int64_t slurm_time_parse(const char *text, size_t length);
