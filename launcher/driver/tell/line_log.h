/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log of a job: what its ranks show, and the messages of hvdrun, for `hvdrun logs` and
 * `attach`.
 *
 * It is a row of files PATH.0.log, PATH.1.log and so on. Each takes half of the log's size, and
 * only the last two are kept. The thread of the output room writes them. If the disk is full, that
 * room drops the rest and says so once. The job goes on.
 *
 * A flood of output would wait for the disk. So at most LINE_LOG_BURST bytes are logged in each
 * LINE_LOG_WINDOW_MS, and then the last ones before it ends: RECENT_BYTES at most, as in recent.h.
 * The last line before a silence may be the cause of a failure. The log says how many bytes are
 * missing.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "driver/tell/recent.h"
#include "io/loop.h"
#include "output/output.h"

#define LINE_LOG_WINDOW_MS 100
#define LINE_LOG_BURST ((int64_t)2 << 20)
#define LINE_LOG_BAR_NS INT64_C(1000000000) /* a progress bar is logged once in this time */

struct line_log;

/* `bytes` is the size of the log, more than 0. `path` is copied. */
struct line_log *line_log_create(struct loop *loop, struct output *output, const char *path,
                                 int64_t bytes);
void line_log_destroy(struct line_log *log); /* before its output; accepts NULL */

/* `goes_on`: the last line of the piece has no end yet. `log` may be NULL: there is none. */
void line_log_add(struct line_log *log, const struct recent_piece *piece, bool goes_on);

/* A line that the next one overwrites. */
void line_log_add_bar(struct line_log *log, const struct recent_piece *piece);
