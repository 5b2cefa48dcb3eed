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
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
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

/*
 * A piece of the log: a head, and then the text of one or more lines. Most
 * pieces are all the lines that came at once, so that a log costs little. The head is a line:
 *
 *   MILLISECONDS RANK STREAM BYTES
 *
 * The time is since 1970. RANK is "-" for hvdrun's own messages. STREAM is "o" or "e"; a capital
 * letter says that the last line goes on in the next piece of this rank and stream. BYTES is the
 * length of the text.
 */
#define LOG_PIECE_MAX ((size_t)16 << 20) /* bytes of the text */

struct log_head {
    int64_t wall_ms;
    int rank; /* RECENT_LAUNCHER: a message of hvdrun */
    bool is_stderr, goes_on;
    size_t length;
};

void log_head_append(const struct log_head *head, struct buf *out); /* with its newline */

/* Reads a head without its newline. False: it is not a head. */
bool log_head_parse(const char *bytes, size_t length, struct log_head *out);
