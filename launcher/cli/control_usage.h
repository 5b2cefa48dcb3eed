/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a job uses, as `hvdrun top` shows it. Pure. `usage` is the answer of the job
 * (driver/usage/usage_json.h), of which nothing is taken for granted.
 */
#pragma once

#include <jansson.h>

#include "base/buf.h"

#define CONTROL_USAGE_MARK '*' /* begins the line of a rank that differs */

/* Text for a terminal. usage_marks_set() comes first (driver/usage/usage_marks.h). */
void control_usage_text(const json_t *usage, struct buf *out);

/* The same in parts: a title, and two tables, whose first lines are their titles. */
struct control_usage_views {
    struct buf title, ranks, hosts;
};
void control_usage_views(const json_t *usage, struct control_usage_views *out);
void control_usage_views_clear(struct control_usage_views *views);
void control_usage_views_destroy(struct control_usage_views *views);

/* The orders that a user can choose, one after the other, and then the first one again. */
const char *control_usage_order_name(size_t order);
void control_usage_sort(json_t *usage, size_t order);
