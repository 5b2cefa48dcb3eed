/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of a worker's output the console shows, by torchrun's --redirects, --tee and
 * --local-ranks-filter. Pure.
 *
 * A stream is `0` (none), `1` (stdout), `2` (stderr) or `3` (both), for all local ranks, or for
 * some: `0:1,1:2`.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"

#define CONSOLE_RANKS 1024 /* local ranks that a list can name */

struct streams {
    unsigned char of[CONSOLE_RANKS]; /* by local rank: bit 0 is stdout, bit 1 stderr */
    unsigned char rest;              /* of all others */
    int named;                       /* local ranks below this one are in `of` */
};

/* NULL is none. -1: the text is not such a value. */
int streams_read(const char *text, struct streams *out);
bool streams_any(const struct streams *streams);

/* Local ranks with commas ("0,2"); NULL: all. */
int streams_read_filter(const char *text, struct streams *out);

/* Appends the value of --ranks. Nothing: the console shows all. A stream that is redirected goes
 * only to its file, unless it is in `tee`. */
void console_ranks(const struct streams *redirected, const struct streams *tee,
                   const struct streams *filter, struct buf *out);
