/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the status page asks for, as JSON.
 *
 * The job: its status (tell/status_json.h, and what its kind adds) with
 *
 *   "now": SECONDS since 1970, "sampled_s": SECONDS (age of the use; no key: none yet),
 *   "page_file": PATH (that of --page-file; no key: there will be none),
 *   "hosts": [{...; and what the host uses}], "ranks": [{...; and what the rank uses, "marks"}]
 *
 * where the use is as in usage/usage_json.h and the marks as in usage/usage_marks.h.
 *
 * The output of a rank, or the last output of all:
 *
 *   {"rank": N (no key: all), "bar": TEXT (of its progress bar; no key: none),
 *    "lines": [{"time": SECONDS since 1970, "rank": N (null: hvdrun), "stderr": true or no key,
 *               "text": TEXT}, ...] (the last PAGE_LINES)}
 *
 * The end of the job:
 *
 *   {"status": N, "cause": TEXT, "text": TEXT, "up_s": SECONDS (that the job ran),
 *    "percent": N (of its progress; no key: it reported none),
 *    "failure": TEXT (the report of a failure; no key: none),
 *    "ranks": [{"rank": N, "exit_code": N or "signal": N, "ended": SECONDS since 1970}, ...]
 *    (some of those that failed before hvdrun ended them), "lines": [as above, but fewer]}
 *
 * This one has PAGE_END_BYTES at most, which fit into a socket.
 *
 * Texts are valid UTF-8, but may have control characters: the ranks chose them.
 */
#pragma once

#include "base/buf.h"
#include "driver/job/job.h"

#define PAGE_LINES 200
#define PAGE_END_BYTES ((size_t)64 << 10)

struct json_t;

bool page_json_has_output(const struct job *job, int rank); /* -1: all */

/* The results are the caller's. */
struct json_t *page_json_job(struct job *job);            /* also asks for new values */
struct json_t *page_json_job_last(const struct job *job); /* at its end: with the last values */
struct json_t *page_json_output(const struct job *job, int rank); /* -1: all */
struct json_t *page_json_end(const struct job *job);              /* with a verdict */

/* Consumes the object. Beyond the limit of the buffer, nothing is there. */
void page_json_put(struct json_t *object, struct buf *out);
