/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints lines of a log with labels, as the job itself did. Lines of stdout go to stdout; all
 * others and the messages of hvdrun go to stderr.
 */
#pragma once

#include "cli/log_reader.h"

struct log_show;

/* `ranks`: a list such as "0,4-7", which has been checked; NULL: all, and the messages of hvdrun.
 */
struct log_show *log_show_create(const char *ranks, int64_t since_ms);
void log_show_destroy(struct log_show *show); /* accepts NULL */

bool log_show_wants(const struct log_show *show, const struct log_line *line);
void log_show_line(struct log_show *show, const struct log_line *line);
/* Writes what has been shown so far. -1: errno. */
int log_show_flush(struct log_show *show);
