/* SPDX-License-Identifier: Apache-2.0 */
/* `hvdrun libraries`: the table of what the ranks of a job have loaded. */
#pragma once

#include <jansson.h>

#include "base/buf.h"
#include "cli/features.h"

/* The answer of the job as a table, without control characters. */
void control_libraries_text(const json_t *answer, struct buf *out);

control_run control_libraries; /* it blocks */
