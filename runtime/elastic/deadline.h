/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much time a worker has before its host goes away. The launcher writes it to the file that
 * HVDRUN_DEADLINE_FILE names (docs/elastic.md): "SECONDS-SINCE-1970 REASON". Without a deadline
 * there is no file.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"

#define DEADLINE_VARIABLE "HVDRUN_DEADLINE_FILE"
#define DEADLINE_REASON_MAX 1024

/* Pure. The milliseconds from `now_ns` (since 1970) until the deadline in `text`, at least 0.
 * `reason` receives the reason. -1: the text has another form. */
int64_t deadline_parse(const char *text, int64_t now_ns, char reason[DEADLINE_REASON_MAX]);

/* Reads the file at `path`. -1: there is no deadline. -2: the file cannot be read. */
int64_t deadline_read(const char *path, char reason[DEADLINE_REASON_MAX], struct error *err);
