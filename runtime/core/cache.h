/* SPDX-License-Identifier: Apache-2.0 */
/* The response cache of a process set: numbers for requests that ranks have agreed on. All ranks
 * change it in the same order, so it is the same on all of them. */
#pragma once

#include "base/map.h"
#include "core/request.h"

struct cache_slot {
    struct request request; /* key NULL: free */
    size_t id;              /* the slot's own number */
};

struct cache {
    struct cache_slot *slots;
    size_t capacity;
    struct map by_key; /* -> struct cache_slot */
};

void cache_init(struct cache *cache, size_t capacity);
void cache_destroy(struct cache *cache);

/* NULL: it is not there. Borrowed until the slot changes. */
const struct cache_slot *cache_find(const struct cache *cache, const char *key);
const struct request *cache_get(const struct cache *cache, size_t id);

/* Copies the request. What had this key or number before is gone. */
void cache_put(struct cache *cache, size_t id, const struct request *request);
void cache_drop(struct cache *cache, size_t id);

/* SIZE_MAX: all are in use. */
size_t cache_free_id(const struct cache *cache);
