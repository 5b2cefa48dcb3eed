/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record of a job: a JSON object in the folder of jobs (folder.h). A driver writes what it
 * knows at the start, and replaces that when the job has ended. It holds a lock on the file from
 * start to end. So the record of a driver that was killed has no end, and nobody locks it: the job
 * is lost.
 *
 *   {"version": 1, "job": ID, "pid": N, "started": SECONDS since 1970, "command": TEXT, "folder":
 * PATH, "size": N (ranks), "host_count": N, "log_folder": PATH (of --log-dir; no key: this folder),
 * "slurm_job": TEXT (the Slurm job that hvdrun runs in; no key: none)}
 *
 * The record of an ended job also has these:
 *
 *   {"ended": SECONDS since 1970, "status": N, "cause": TEXT, "text": LINE, "failure": TEXT,
 *    "report": the object of --report, "lines": [{"time", "rank", "stream", "text"}, ...]}
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define JOB_RECORD_VERSION 1
#define JOB_RECORD_BYTES_MAX ((size_t)1 << 20)

struct job_record;

/* Makes the record of a job that has just started. If another job has this id (it may be in another
 * container), the record is called ID.2, or ID.3 and so on. NULL: it cannot be made. `folder` must
 * stay open. */
struct job_record *job_record_create(int folder, const char *job, const json_t *facts,
                                     struct error *err);
const char *job_record_name(const struct job_record *record);

/* Replaces the content by a longer one. -1: the disk is full, or the folder is gone; then no record
 * remains. */
int job_record_finish(const struct job_record *record, const json_t *facts, struct error *err);
void job_record_destroy(struct job_record *record); /* unlocks it; accepts NULL */

enum job_record_state { JOB_RECORD_RUNNING, JOB_RECORD_ENDED, JOB_RECORD_LOST };

/* Reads a record, also from the journal. The caller owns the result. NULL: there is
 * none, or it is being written. */
json_t *job_record_read(int folder, const char *job, enum job_record_state *state);

/*
 * The records of jobs that ended before they had a file of their own. Each is one line
 * of a file in the folder of jobs. To append a line costs much less than to make a file, and most
 * of these jobs do next to nothing. A journal of JOB_JOURNAL_BYTES becomes the old one, which is
 * dropped then.
 */
#define JOB_JOURNAL_BYTES (256 * 1024)

/* Appends the record, which has its "job". -1: the disk is full, or the folder is gone. */
int job_journal_add(int folder, const json_t *record, struct error *err);

/* Calls `each` for every record of a job that ended at `since_s` (seconds since 1970) or later, the
 * oldest first. `record` is borrowed. */
void job_journal_walk(int folder, int64_t since_s,
                      void (*each)(void *context, const json_t *record), void *context);
