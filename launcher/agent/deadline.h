/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The deadline of this node: a spot machine is reclaimed then, or a node is drained until then.
 * Workers find it in the file that HVDRUN_DEADLINE_FILE names. The file exists only while there is
 * a deadline. It has one line: seconds since 1970 (UTC, three decimals), a blank, and the reason.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"

#define DEADLINE_FILE_NAME "deadline" /* in each runtime folder */

struct deadline {
    bool is_set;
    int64_t at_ms; /* since 1970 */
    char *why;     /* one line */
};

/* The deadline is `within_ms` after `now_ms` (since 1970). A later call replaces it. */
void deadline_set(struct deadline *deadline, int64_t now_ms, int64_t within_ms, const char *why);
void deadline_clear(struct deadline *deadline); /* also frees */

/* Writes the file into a runtime folder (NULL: there is none); a reader sees all of it or nothing.
 * Without a deadline it removes the file. A failure is a warning. */
void deadline_write(const struct deadline *deadline, const char *folder, const struct log *log);
