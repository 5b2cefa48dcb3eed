/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that do not run any more, by their records (driver/control/record.h). */
#pragma once

#include <jansson.h>

#include "base/buf.h"
#include "driver/control/record.h"

/* Appends how the job ended, and its last lines. `now_s`: seconds since 1970. */
void control_record_text(const json_t *record, enum job_record_state state, double now_s,
                         struct buf *out);

/* "ended, status 3", "stopped, status 130" or "lost", for a table. */
void control_record_state(const json_t *record, enum job_record_state state, struct buf *out);
