/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A regular expression that says whether a line matches, at a cost that is linear in the length of
 * the line. Pure. expect.h says what it accepts.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define EXPECT_PATTERN_MAX 256 /* bytes */
#define EXPECT_REPEATS_MAX 1000

struct expect_pattern;

/* NULL: it is not a regular expression, or one that can be slow; `err` says why. */
struct expect_pattern *expect_pattern_create(const char *text, struct error *err);
void expect_pattern_destroy(struct expect_pattern *pattern); /* accepts NULL */
const char *expect_pattern_text(const struct expect_pattern *pattern);

/* `line[length]` is a NUL; there may be others before it. */
bool expect_pattern_matches(struct expect_pattern *pattern, const char *line, size_t length);
