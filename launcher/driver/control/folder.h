/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folder of a user's jobs on this machine: ${TMPDIR:-/tmp}/hvdrun-UID/.jobs-HOST, mode 0700.
 * Its name has the host, because several machines may share $TMPDIR, and perhaps not their locks.
 *
 *   JOB.json      The record of a job (record.h). Its driver locks it.
 *   JOB.control   The control socket of a running job (control.h).
 *   JOB.new       The same before it listens.
 *   JOB.N.log     A file of its log (driver/tell/line_log.h).
 *   *.evidence/   What is known about a failure (features/evidence/evidence_folder_driver.c).
 *   *.jsonl       The records of very short jobs (record.h).
 *
 * A driver makes the record first and the socket second. So if nobody locks the record of a socket,
 * its driver was killed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define JOB_RECORD_SUFFIX ".json"
#define JOB_CONTROL_SUFFIX ".control"
#define JOB_CONTROL_NEW_SUFFIX ".new" /* not longer: it must also fit into an address */

#define JOB_RECORDS_KEPT 200
#define JOB_RECORD_AGE_S (24 * 60 * 60)
#define JOB_EVIDENCE_KEPT 20
#define JOB_LOGS_BYTES ((int64_t)256 << 20)

char *job_folder_path(void); /* need not exist; the caller frees it */
/* That of a process with this TMPDIR (NULL: it has none). */
char *job_folder_path_in(const char *tmpdir);

/* Opens it, and makes it if it is missing. -1: it cannot be made, or others have access to it. */
int job_folder_open(struct error *err);

/* Its path, if it can be made; the caller frees it. NULL: there is none. */
char *job_folder_made(void);

/* Opens it if it exists. -1: it does not, or others have access to it. */
int job_folder_find_in(const char *tmpdir);

/* Can the job write a record and the beginning of a log there? -1: the disk is full or read-only.
 */
int job_folder_check(struct error *err);

/* The job whose file has this name and suffix. The caller frees it. NULL: the name has another
 * suffix. */
char *job_folder_job(const char *name, const char *suffix);

/* The job and the number of a file of a log. The caller frees the job. NULL: it is not one. */
char *job_folder_log(const char *name, int64_t *number);

/* Removes the log of an older job that had this id; `folder` is that of the log. */
void job_folder_remove_log(int folder, const char *job);

/* Does the driver of this job live? */
bool job_folder_runs(int folder, const char *job);

/* Removes sockets that nobody serves. Removes records that nobody has written to for
 * JOB_RECORD_AGE_S, and the oldest ones beyond JOB_RECORDS_KEPT. Keeps the latest logs,
 * JOB_LOGS_BYTES in all, and none without a record. Keeps the latest JOB_EVIDENCE_KEPT folders of
 * evidence, for JOB_RECORD_AGE_S. `now_s`: seconds since 1970. Files of running jobs stay. A file
 * from the future (the clock was set back) counts as new. */
void job_folder_tidy(int folder, int64_t now_s);
