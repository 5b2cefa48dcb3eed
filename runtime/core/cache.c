/* SPDX-License-Identifier: Apache-2.0 */
#include "core/cache.h"

#include <stdlib.h>

#include "base/mem.h"

void cache_init(struct cache *cache, size_t capacity)
{
    *cache =
        (struct cache){.slots = mem_array(capacity, sizeof *cache->slots), .capacity = capacity};
    for (size_t id = 0; id < capacity; id++)
        cache->slots[id].id = id;
}

void cache_destroy(struct cache *cache)
{
    for (size_t id = 0; id < cache->capacity; id++)
        request_destroy(&cache->slots[id].request);
    free(cache->slots);
    map_clear(&cache->by_key, NULL);
    *cache = (struct cache){0};
}

const struct cache_slot *cache_find(const struct cache *cache, const char *key)
{
    return map_get(&cache->by_key, map_text(key));
}

const struct request *cache_get(const struct cache *cache, size_t id)
{
    bool used = id < cache->capacity && cache->slots[id].request.key != NULL;
    return used ? &cache->slots[id].request : NULL;
}

void cache_drop(struct cache *cache, size_t id)
{
    if (cache_get(cache, id) == NULL)
        return;
    map_remove(&cache->by_key, map_text(cache->slots[id].request.key));
    request_destroy(&cache->slots[id].request);
}

void cache_put(struct cache *cache, size_t id, const struct request *request)
{
    struct request copy = request_copy(request); /* it may be that of the slot */
    const struct cache_slot *old = cache_find(cache, copy.key);
    if (old != NULL)
        cache_drop(cache, old->id);
    cache_drop(cache, id);
    cache->slots[id].request = copy;
    map_put(&cache->by_key, map_text(copy.key), &cache->slots[id]);
}

size_t cache_free_id(const struct cache *cache)
{
    if (cache->by_key.count == cache->capacity)
        return SIZE_MAX;
    for (size_t id = 0; id < cache->capacity; id++)
        if (cache->slots[id].request.key == NULL)
            return id;
    return SIZE_MAX;
}
