/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The deadline of this node: until when it is there (a spot machine that is taken away, a node that
 * is drained). Workers find it in the file that HVDRUN_DEADLINE_FILE names, which does not exist
 * before: one line with the time in seconds since 1970 (UTC, three decimals), a blank, and why.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"

#define DEADLINE_FILE "deadline" /* in each runtime folder */

struct deadline {
    bool is_set;
    int64_t at_ms; /* since 1970 */
    char *why;     /* one line */
};

/* From now on, `now_ms` (since 1970). A later call replaces it. */
void deadline_set(struct deadline *deadline, int64_t now_ms, int64_t within_ms, const char *why);
void deadline_clear(struct deadline *deadline); /* also frees */

/* Writes the file into a runtime folder (NULL: there is none), so that a reader sees all of it or
 * nothing. Without a deadline the file goes; what cannot be written is a warning. */
void deadline_write(const struct deadline *deadline, const char *folder, const struct log *log);
