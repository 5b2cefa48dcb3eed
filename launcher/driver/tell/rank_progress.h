/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far the ranks say that they are (model/progress), by seat. A job in which no rank says so
 * has no memory for it.
 *
 * The progress of the job is what rank 0 says. If rank 0 says nothing, it is the least percent of
 * the ranks that do.
 */
#pragma once

#include "driver/job/job.h"
#include "model/progress/progress.h"

struct progress_list;

struct progress_report {
    struct progress progress;
    uint32_t epoch;   /* in which the worker was started; 0: it has reported nothing */
    int64_t when_ns;  /* driver's monotonic clock */
    uint64_t reports; /* of this worker */
};

/* Takes what `progress` owns. */
void progress_list_take(struct progress_list *list, int seat, uint32_t epoch, int64_t when_ns,
                        struct progress *progress);

/* Of the last worker on this seat; NULL: it has reported nothing. */
const struct progress_report *rank_progress(const struct job *job, int seat);

/* The seat whose report is the progress of the job; -1: there is none. */
int rank_progress_of_job(const struct job *job);

/* Seconds until the end, by the report and the time since then; -1: not said. */
double progress_report_eta_s(const struct progress_report *report, int64_t now_ns);
