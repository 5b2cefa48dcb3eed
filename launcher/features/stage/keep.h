/* SPDX-License-Identifier: Apache-2.0 */
/* --stage-keep: how many bytes of copies a host keeps for the next job, and for how long. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct stage_keep {
    uint64_t bytes; /* 0: nothing is kept */
    int64_t age_ms; /* since a job last used it */
};

#define STAGE_KEEP_USUAL "32G:7d"

/* "0", "32G", "500M:2d". Without a time it is 7 days. -1: wrong. */
int stage_keep_parse(const char *text, struct stage_keep *out, struct error *err);

struct stage_kept { /* a copy */
    uint64_t bytes;
    int64_t used_ms; /* on any clock, the same as `now_ms` */
    bool in_use;
    bool goes; /* set by stage_keep_choose() */
};

/* Which copies go: those that are too old, and then the least recently used ones, until the rest
 * and `coming` more bytes keep the limit. One that is in use counts, and stays. */
void stage_keep_choose(const struct stage_keep *keep, struct stage_kept *copies, size_t count,
                       uint64_t coming, int64_t now_ms);
