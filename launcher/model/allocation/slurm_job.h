/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fields of `scontrol show job -o` on which the end of our job depends. Pure.
 *
 * Times are expected as scontrol prints them with TZ=UTC0 and SLURM_TIME_FORMAT=standard, or in
 * seconds since 1970.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

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
