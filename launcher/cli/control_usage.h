/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a job uses, as `hvdrun top` shows it. Pure. `usage` is the answer of the job
 * (driver/usage/usage_json.h), of which nothing is taken for granted.
 */
#pragma once

#include <jansson.h>

#include "base/buf.h"

#define CONTROL_USAGE_MARK '*' /* begins the line of a rank that differs */

/* Puts the ranks that differ from the others first, and says in "marks" in which values they do:
 * {"cpus": "less", "resident_bytes": "more"}. */
void control_usage_mark(json_t *usage);

/* Text for a terminal. control_usage_mark() comes first. */
void control_usage_text(const json_t *usage, struct buf *out);
