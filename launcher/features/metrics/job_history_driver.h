/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The history of a job (features/metrics/history.h), for the status page. It asks the sampler for
 * each point, at the times that the history says, while some rank runs. A round that runs already,
 * or has just ended, is not asked for again. Jobs without the page have no history.
 */
#pragma once

#include "driver/job/job.h"

struct job_history;
struct json_t;

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
