/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What ranks say about their progress, as values of jansson that the caller owns:
 *
 *   {"rank": N, "percent": N, "eta_s": SECONDS (left now), "text": TEXT,
 *    "metrics": {NAME: N, or TEXT if it is not finite}, "age_s": SECONDS (since the report)}
 *
 * What a rank does not say has no key. At the end of a job there is no "eta_s" and no "age_s".
 */
#pragma once

#include "driver/job/job.h"

struct json_t;

struct json_t *progress_json_rank(const struct job *job, int seat); /* NULL: it said nothing */
struct json_t *progress_json_job(const struct job *job);            /* likewise */
