/* SPDX-License-Identifier: Apache-2.0 */

#include <stdlib.h>

#include "base/mem.h"
#include "features/stage/stage.h"

#define ALL_ON_THE_WAY 256 /* chunks of all hosts, if each has another one */

/* FANOUT_SLOTS: none has it. */
static size_t find(const struct fanout_cache *cache, uint32_t root, uint64_t chunk)
{
    size_t i = 0;
    while (i < FANOUT_SLOTS && (cache->slots[i].block == NULL || cache->slots[i].chunk != chunk ||
                                cache->slots[i].root != root))
        i++;
    return i;
}

bool fanout_host_begin(struct fanout_host *host, uint32_t root, const uint64_t *pairs,
                       size_t pair_count, uint64_t chunks)
{
    uint64_t next = 0; /* what a range may begin with */
    fanout_host_clear(host);
    *host = (struct fanout_host){.root = root, .wants = true, .count = pair_count / 2};
    host->lacks = mem_array(host->count, sizeof(*host->lacks));
    bool good = pair_count % 2 == 0;
    for (size_t i = 0; good && i < host->count; i++) {
        struct fanout_range range = {pairs[2 * i], pairs[2 * i + 1]};
        good = range.first >= next && range.count > 0 && range.first < chunks &&
               range.count <= chunks - range.first;
        host->lacks[i] = range;
        host->total += range.count;
        next = range.first + range.count;
    }
    return good;
}

void fanout_host_clear(struct fanout_host *host)
{
    free(host->lacks);
    *host = (struct fanout_host){.count = 0};
}

bool fanout_host_taken(struct fanout_host *host, uint64_t taken)
{
    if (taken < host->taken || taken > host->sent)
        return false;
    host->taken = taken;
    return true;
}

bool fanout_host_next(const struct fanout_host *host, size_t window, uint64_t *chunk)
{
    if (!host->wants || host->range == host->count || host->sent - host->taken >= window)
        return false;
    *chunk = host->lacks[host->range].first + host->offset;
    return true;
}

size_t fanout_host_run(const struct fanout_host *host, size_t window,
                       const struct fanout_cache *cache)
{
    uint64_t first = host->lacks[host->range].first + host->offset;
    uint64_t rest = host->lacks[host->range].count - host->offset;
    uint64_t credit = window - (host->sent - host->taken), run = 1;
    while (run < rest && run < credit && run < STAGE_WINDOW &&
           find(cache, host->root, first + run) == FANOUT_SLOTS)
        run++;
    return (size_t)run;
}

void fanout_host_sent(struct fanout_host *host)
{
    host->sent++;
    if (++host->offset < host->lacks[host->range].count)
        return;
    host->offset = 0;
    host->range++;
}

size_t fanout_window(size_t hosts)
{
    size_t share = hosts == 0 ? STAGE_WINDOW : ALL_ON_THE_WAY / hosts;
    return share < 1 ? 1 : share > STAGE_WINDOW ? STAGE_WINDOW : share;
}

void *fanout_cache_get(struct fanout_cache *cache, uint32_t root, uint64_t chunk)
{
    size_t i = find(cache, root, chunk);
    if (i == FANOUT_SLOTS)
        return NULL;
    cache->slots[i].used = ++cache->clock;
    return cache->slots[i].block;
}

void *fanout_cache_put(struct fanout_cache *cache, uint32_t root, uint64_t chunk, void *block)
{
    struct fanout_slot *oldest = &cache->slots[0];
    for (size_t i = 0; i < FANOUT_SLOTS; i++) {
        if (cache->slots[i].used < oldest->used)
            oldest = &cache->slots[i];
    }
    void *before = oldest->block;
    *oldest = (struct fanout_slot){root, chunk, ++cache->clock, block};
    return before;
}
