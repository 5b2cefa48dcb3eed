/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A piece of the log of a job (line_log.h): a head, and then the text of one or more lines. Most
 * pieces are all the lines that came at once, so that a log costs little. The head is a line:
 *
 *   MILLISECONDS RANK STREAM BYTES
 *
 * The time is since 1970. RANK is "-" for hvdrun's own messages. STREAM is "o" or "e"; a capital
 * letter says that the last line goes on in the next piece of this rank and stream. BYTES is the
 * length of the text. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

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
