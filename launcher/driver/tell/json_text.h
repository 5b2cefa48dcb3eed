/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of others, times and progress, as values of jansson. The caller owns the results. */
#pragma once

#include <stdint.h>

#include "driver/job/job.h"

struct json_t;
struct recent_piece;

/* Names and texts come from outside and may be invalid UTF-8, which JSON does not allow. */
struct json_t *json_text(const char *text);
struct json_t *json_text_or_null(const char *text); /* null for "" */

/* Our monotonic time as seconds since 1970; null for 0. */
struct json_t *json_wall_time(const struct job *job, int64_t mono_ns);

/* A line of output: "time", "rank" (null: hvdrun) and at most `max` bytes of its "text". */
struct json_t *json_line(const struct recent_piece *line, size_t max);

/* Adds the world of a rank that was spawned, and its rank there. */
void json_add_world(struct json_t *object, const struct rank_record *record);

/*
 * What ranks say about their progress:
 *
 *   {"rank": N, "percent": N, "eta_s": SECONDS (left now), "text": TEXT,
 *    "metrics": {NAME: N, or TEXT if it is not finite}, "age_s": SECONDS (since the report)}
 *
 * What a rank does not say has no key. At the end of a job there is no "eta_s" and no "age_s".
 */
struct json_t *progress_json_rank(const struct job *job, int seat); /* NULL: it said nothing */
struct json_t *progress_json_job(const struct job *job);            /* likewise */

#define DAY_TIME_SIZE ((size_t)16)

/* For people: "14:03:22", in local time. `out` has room for DAY_TIME_SIZE bytes. */
void day_time_text(int64_t wall_ns, char *out);

/* Makes jansson end the process when there is no memory, like all other allocations
 * (base/mem.h). So a report or a stream of events is complete, or the job says why it is not.
 * Call it before any use of jansson. */
void json_memory_init(void);
