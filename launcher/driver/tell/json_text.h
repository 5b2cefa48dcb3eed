/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of others and times, as values of jansson. The caller owns the results. */
#pragma once

#include <stdint.h>

#include "driver/job/job.h"

struct json_t;

/* Names and texts come from outside and may be invalid UTF-8, which JSON does not allow. */
struct json_t *json_text(const char *text);

/* Our monotonic time as seconds since 1970; null for 0. */
struct json_t *json_wall_time(const struct job *job, int64_t mono_ns);

/* Adds the world of a rank that was spawned, and its rank there. */
void json_add_world(struct json_t *object, const struct rank_record *record);

/* Makes jansson end the process when there is no memory, like all other allocations
 * (base/mem.h). So a report or a stream of events is complete, or the job says why it is not.
 * Call it before any use of jansson. */
void json_memory_init(void);
