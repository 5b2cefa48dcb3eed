/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the launcher says about changed hosts, over a line of its own (line/line.h). It has no
 * thread: what has come waits in the socket until somebody asks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct elastic_notices;

/* NULL: there is no line; the program is not notified then. */
struct elastic_notices *elastic_notices_open(const char *address, struct error *err);
void elastic_notices_close(struct elastic_notices *notices); /* accepts NULL */

/* Whether something has come since the last call. NULL: false. */
bool elastic_notices_take(struct elastic_notices *notices);

/*
 * How much time a worker has before its host goes away. The launcher writes it to the file that
 * HVDRUN_DEADLINE_FILE names (docs/elastic.md): "SECONDS-SINCE-1970 REASON". Without a deadline
 * there is no file.
 */
#define DEADLINE_VARIABLE "HVDRUN_DEADLINE_FILE"
#define DEADLINE_REASON_MAX 1024

/* Reads the file at `path`. -1: there is no deadline. -2: the file cannot be read. */
int64_t deadline_read(const char *path, char reason[DEADLINE_REASON_MAX], struct error *err);
