/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints the answer to a status request (driver/control/request.h) as a table for people. It skips
 * what the answer does not have, and removes control characters from texts.
 */
#pragma once

#include <jansson.h>

#include "base/buf.h"
#include "driver/control/record.h"

void control_status_text(const json_t *status, struct buf *out);

/* Appends how the job ended, and its last lines. `now_s`: seconds since 1970. */
void control_record_text(const json_t *record, enum job_record_state state, double now_s,
                         struct buf *out);

/* "ended, status 3", "stopped, status 130" or "lost", for a table. */
void control_record_state(const json_t *record, enum job_record_state state, struct buf *out);
