/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which chunk goes to which host next, and which chunk is read next. Pure: bytes are not its task.
 *
 * Each host has the chunks that it lacks, and may have a few of them on the way at once. A chunk
 * that was read stays in a cache until others displace it. So hosts that are near each other share
 * what is read. A host that is far behind holds nobody up: its chunks are read again for it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "features/stage/stage.h"

struct fanout_range {
    uint64_t first, count;
};

struct fanout_host {
    struct fanout_range *lacks; /* owned; in rising order */
    size_t count;
    size_t range;    /* of the next chunk; `count`: all are sent */
    uint64_t offset; /* in that */
    uint64_t total;  /* chunks that it lacks */
    uint64_t sent, taken;
    uint32_t root;
    bool wants; /* it has said what it lacks of this root */
};

/* `pairs` as the host has sent them. false: they are not ranges in rising order below `chunks`. */
bool fanout_host_begin(struct fanout_host *host, uint32_t root, const uint64_t *pairs,
                       size_t pair_count, uint64_t chunks);
void fanout_host_clear(struct fanout_host *host); /* between two roots, or at the end */

/* The host says that it has written so many in all. false: it cannot have. */
bool fanout_host_taken(struct fanout_host *host, uint64_t taken);

/* Is there a chunk that may be sent to it now, and which? `window`: how many may be on the way. */
bool fanout_host_next(const struct fanout_host *host, size_t window, uint64_t *chunk);
void fanout_host_sent(struct fanout_host *host); /* that one was */

/* How many chunks each of so many hosts may have on the way. */
size_t fanout_window(size_t hosts);

#define FANOUT_SLOTS STAGE_CACHE

struct fanout_cache {
    struct fanout_slot {
        uint32_t root;
        uint64_t chunk, used;
        void *block; /* of the caller; NULL: the slot is free */
    } slots[FANOUT_SLOTS];
    uint64_t clock;
};

/* How many chunks to read for a host from fanout_host_next() on: those that it lacks without a gap,
 * that may be sent to it, and that are not in the cache. */
size_t fanout_host_run(const struct fanout_host *host, size_t window,
                       const struct fanout_cache *cache);

void *fanout_cache_get(struct fanout_cache *cache, uint32_t root, uint64_t chunk); /* NULL */
/* Returns the block that it displaces, or NULL. */
void *fanout_cache_put(struct fanout_cache *cache, uint32_t root, uint64_t chunk, void *block);
