/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The warnings of stall inspectors in what ranks write (features/hang/stall_text.h): they are not
 * progress, and name the ranks that are missing.
 *
 * A line that comes in two pieces, with a sample in between, is not recognised. So it counts as
 * output, as any other line.
 */
#pragma once

#include "features/hang/stall_text.h"
#include "model/exit/tail.h"

struct stall_lines;

struct stall_lines *stall_lines_create(void);
void stall_lines_destroy(struct stall_lines *lines); /* accepts NULL */

/* How many of all bytes that the worker on a seat has written are those of warnings. `tail`: its
 * stderr. `quiet`: the job is; otherwise nothing is searched, and nothing found. */
uint64_t stall_lines_take(struct stall_lines *lines, int seat, const struct tail *tail, bool quiet,
                          int64_t now_ns);

/* The newest warning that names ranks. NULL: none within the last STALL_LINES_FRESH_NS. */
#define STALL_LINES_FRESH_NS (INT64_C(150) * 1000000000) /* Horovod writes one every 60 s */
const struct stall_text *stall_lines_find(const struct stall_lines *lines, int64_t now_ns);
