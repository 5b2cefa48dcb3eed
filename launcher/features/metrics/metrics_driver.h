/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics, the status page and their server: what the driver makes of metrics.h. */
#pragma once

#include "base/buf.h"
#include "driver/job/job.h"
#include "features/metrics/metrics.h"
#include "io/http_server.h"
#include "io/listener.h"

struct json_t;

/*
 * job_metrics_driver.c: the metrics of a job, as text (docs/monitoring.md). What ranks and hosts
 * use is as of the last round of the sampler.
 */

#define METRICS_TEXT_MAX ((size_t)64 << 20)

void metrics_text(struct job *job, enum exposition_format format, struct buf *out);

/*
 * metrics_server_driver.c: what the address of --metrics serves over HTTP. Nobody can change
 * anything there.
 *
 *   /metrics       the metrics of the job, for everyone who reaches the address
 *   /              the status page, for those that the gate lets in, as the next ones are
 *   /job.json      what the page shows of the job, and
 *   /output.json   of the output; ?rank=N for that of one rank (below)
 *   /end.json      answered at the end of the job, or with {} after some seconds
 *   /history.json  what the job used in the last hour; ?since=N: from this point on
 *
 * A request for what ranks and hosts use asks the agents, and is answered when they have answered,
 * or when their time is over. Without requests the server does nothing.
 */

#define METRICS_PATH "/metrics"
#define METRICS_SERVER_WAITS_MAX 16 /* pages that wait for the end; more are refused */

struct metrics_server;

/* NULL: the address cannot be used. */
struct metrics_server *metrics_server_create(struct job *job, const struct listen_address *address,
                                             struct error *err);
void metrics_server_destroy(struct metrics_server *server); /* accepts NULL */

/* The job has its verdict, and the loop runs no more: every client that waits gets an answer. */
void metrics_server_finish(struct metrics_server *server);

struct metrics_urls {
    char *metrics; /* with its path */
    char *outside; /* as others reach the server, without a path */
    char *page;    /* with its token */
};

const struct metrics_urls *metrics_server_urls(const struct metrics_server *server);

/*
 * job_history_driver.c: the history of a job (metrics.h), for the status page. It asks the sampler
 * for each point, at the times that the history says, while some rank runs. A round that runs
 * already, or has just ended, is not asked for again. Jobs without the page have no history.
 */

struct job_history;

/* The job is over: adds the last point, which has only the progress. May be called again. */
void job_history_end(struct job_history *history);

/*
 * The points from number `since` on, which the caller owns:
 *
 *   {"next": N (for `since` of the next question),
 *    "points": [{"time": SECONDS since 1970, "ranks": N (that run), "progress": N (0 to 1),
 *                "cpus": N, "resident_bytes": N, "gpu_use_percent": N, "gpu_memory_bytes": N,
 *                "gap": true or no key (nothing is known of the time before)}, ...]}
 *
 * A value that is not known has no key.
 */
struct json_t *job_history_json(const struct job_history *history, uint64_t since);

/*
 * page_json_driver.c: what the status page asks for, as JSON.
 *
 * The job: its status (driver/tell/tell.h, and what its kind adds) with
 *
 *   "now": SECONDS since 1970, "sampled_s": SECONDS (age of the use; no key: none yet),
 *   "page_file": PATH (that of --page-file; no key: there will be none),
 *   "hosts": [{...; and what the host uses}], "ranks": [{...; and what the rank uses, "marks"}]
 *
 * where the use is as in usage/usage_driver.h and the marks as in usage/usage_marks.h.
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

#define PAGE_LINES 200
#define PAGE_END_BYTES ((size_t)64 << 10)

bool page_json_has_output(const struct job *job, int rank); /* -1: all */

/* The results are the caller's. */
struct json_t *page_json_job(const struct job *job, struct json_t *usage); /* takes it */
struct json_t *page_json_output(const struct job *job, int rank);          /* -1: all */
struct json_t *page_json_end(const struct job *job);                       /* with a verdict */

/* Consumes the object. Beyond the limit of the buffer, nothing is there. */
void page_json_put(struct json_t *object, struct buf *out);

/*
 * page_file_driver.c: the file of --page-file: the status page as it is at the end of the job, in
 * one document that needs no server. In it is
 *
 *   {"job": {...}, "end": {...}, "output": {...} (of all; these three as above),
 *    "outputs": {RANK: {...} (likewise), ...}, "history": {...} (likewise),
 *    "left_out": {"ranks": N, "hosts": N, "outputs": N}}
 *
 * The lists have limits, so that the file of a large job stays small. Ranks and hosts take
 * PAGE_FILE_LIST_BYTES each at most, and the output of single ranks takes PAGE_FILE_OUTPUT_BYTES.
 * Ranks that failed come first, then those that differ from the others. "left_out" counts the rest.
 */

#define PAGE_FILE_RANKS 1000
#define PAGE_FILE_LIST_BYTES ((size_t)1 << 20)
#define PAGE_FILE_OUTPUT_BYTES ((size_t)1 << 20)
#define PAGE_FILE_MAX ((size_t)16 << 20) /* of the whole file; most have less than 0.2 MB */

/* What is in the file. The caller's. */
struct json_t *page_file_json(const struct job *job);
