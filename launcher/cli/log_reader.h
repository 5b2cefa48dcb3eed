/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the log of a job (driver/tell/line_log.h) line by line, also while the job writes it. It
 * never talks to the job, so a slow reader costs the job nothing. If the job has removed files that
 * were not read yet, their lines are missing.
 */
#pragma once

#include <stdbool.h>

#include "driver/tell/recent.h"

struct log_line {
    int64_t wall_ms;         /* since 1970 */
    int rank;                /* RECENT_LAUNCHER: a message of hvdrun */
    bool is_stderr, goes_on; /* goes_on: in the next line of this rank and stream */
    const char *text;        /* without its newline */
    size_t length;
};

struct log_reader;

/* `folder` stays open, and belongs to the caller. The log need not exist yet. */
struct log_reader *log_reader_create(int folder, const char *job);
void log_reader_destroy(struct log_reader *reader); /* accepts NULL */

/* The next line; its text is borrowed until the next call. False: there is none yet. */
bool log_reader_next(struct log_reader *reader, struct log_line *out);

bool log_reader_missed(const struct log_reader *reader); /* lines of files that were removed */
/* A part of a piece has come, and not the rest. After the end of the job: the disk was full. */
bool log_reader_is_cut(const struct log_reader *reader);
