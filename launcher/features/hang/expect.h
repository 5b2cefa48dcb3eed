/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --expect 'REGEX:TIME': a line like this must come from some rank at least that often. Pure: the
 * output of the ranks and the time come in.
 *
 * An expectation is armed by the first line that matches, so the start of a program may take any
 * time. It is disarmed when a rank starts or ends. So no line is due while workers load their data
 * again, or while the last ranks clean up. The next line that matches arms it again.
 *
 * A line ends with a newline or a carriage return. Only its first EXPECT_LINE_MAX bytes count.
 * The pattern is an extended regular expression of POSIX, and matches bytes. What would make a
 * match slow is refused: references to groups, and intervals that multiply to a large number.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strv.h"

#define EXPECT_PATTERN_MAX 256 /* bytes */
#define EXPECT_LINE_MAX 4096
#define EXPECT_MAX 16 /* expectations */

struct expects;

/* -1 and STATUS_USAGE: one of the texts is wrong; `place` names the option. `*out` is NULL if there
 * is no text. */
int expects_create(const struct strv *texts, const char *place, struct expects **out,
                   struct error *err);
void expects_destroy(struct expects *expects); /* accepts NULL */

int64_t expects_shortest_ms(const struct expects *expects); /* of the times; 0 for NULL */

/* Bytes of a stream (0 or 1) of the worker on a seat, in order. */
void expects_bytes(struct expects *expects, int seat, int stream, const void *bytes, size_t length,
                   int64_t now_ms);
void expects_disarm(struct expects *expects); /* accepts NULL */
/* Up to now nobody knows what the ranks did: the times begin again. Accepts NULL. */
void expects_restart(struct expects *expects, int64_t now_ms);

/* All output up to `seen_ms` has been taken in. The number of an expectation that was not met up to
 * then; -1: none. Accepts NULL. */
int expects_overdue(const struct expects *expects, int64_t seen_ms);
bool expects_is_overdue(const struct expects *expects, int which, int64_t seen_ms);

struct expect {
    const char *pattern;
    int64_t limit_ms;
    int64_t last_ms; /* of a line that matched */
    bool met;        /* a line has ever matched it */
};

/* NULL: there are not so many. Accepts NULL. */
const struct expect *expects_at(const struct expects *expects, int which);
