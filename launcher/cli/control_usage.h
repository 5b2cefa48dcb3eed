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
