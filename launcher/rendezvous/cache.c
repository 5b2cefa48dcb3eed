/* SPDX-License-Identifier: Apache-2.0 */
#include "rendezvous/cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"

enum { BLOB_COST = 128 };

struct scope {
    struct map blobs; /* by key, which follows the bytes of the blob */
    uint64_t generation;
    char name[];
};

struct rendezvous_cache {
    struct map scopes;   /* by name */
    uint64_t generation; /* the newest given out */
    uint64_t unknown;    /* generation of the scopes that have no record */
    size_t memory, memory_limit;
};

struct rendezvous_cache *rendezvous_cache_create(size_t memory_limit)
{
    struct rendezvous_cache *cache = mem_alloc(sizeof(*cache));
    cache->memory_limit = memory_limit;
    return cache;
}

void rendezvous_cache_limit(struct rendezvous_cache *cache, size_t memory_limit)
{
    cache->memory_limit = memory_limit;
}

static void scope_free(void *value)
{
    struct scope *scope = value;
    map_clear(&scope->blobs, free);
    free(scope);
}

void rendezvous_cache_destroy(struct rendezvous_cache *cache)
{
    if (cache == NULL)
        return;
    map_clear(&cache->scopes, scope_free);
    free(cache);
}

static struct scope *find_scope(const struct rendezvous_cache *cache, const char *name)
{
    return map_get(&cache->scopes, map_text(name));
}

static struct scope *get_scope(struct rendezvous_cache *cache, const char *name)
{
    struct scope *scope = find_scope(cache, name);
    if (scope != NULL)
        return scope;
    size_t size = strlen(name) + 1;
    scope = mem_alloc(sizeof(*scope) + size);
    scope->generation = cache->unknown;
    memcpy(scope->name, name, size);
    map_put(&cache->scopes, map_text(scope->name), scope);
    return scope;
}

uint64_t rendezvous_cache_generation(const struct rendezvous_cache *cache, const char *scope)
{
    const struct scope *found = find_scope(cache, scope);
    return found == NULL ? cache->unknown : found->generation;
}

const struct rendezvous_blob *rendezvous_cache_get(const struct rendezvous_cache *cache,
                                                   const char *scope, const char *key)
{
    const struct scope *found = find_scope(cache, scope);
    return found == NULL ? NULL : map_get(&found->blobs, map_text(key));
}

static void release(struct rendezvous_cache *cache, struct rendezvous_blob *blob)
{
    cache->memory -= blob->length + BLOB_COST;
    free(blob);
}

void rendezvous_cache_keep(struct rendezvous_cache *cache, uint64_t generation, const char *scope,
                           const char *key, const void *bytes, size_t length)
{
    size_t room = cache->memory < cache->memory_limit ? cache->memory_limit - cache->memory : 0;
    if (rendezvous_cache_generation(cache, scope) != generation || room < BLOB_COST ||
        length > room - BLOB_COST)
        return;
    if (find_scope(cache, scope) == NULL && cache->scopes.count == RENDEZVOUS_CACHE_SCOPES_MAX)
        rendezvous_cache_reset(cache);
    size_t key_size = strlen(key) + 1;
    struct rendezvous_blob *blob = mem_alloc(sizeof(*blob) + length + key_size);
    blob->length = length;
    memcpy(blob->bytes + length, key, key_size);
    if (length > 0)
        memcpy(blob->bytes, bytes, length);
    cache->memory += length + BLOB_COST;
    struct scope *owner = get_scope(cache, scope);
    struct rendezvous_blob *old = map_put(&owner->blobs, map_text(blob->bytes + length), blob);
    if (old != NULL)
        release(cache, old);
}

void rendezvous_cache_remove(struct rendezvous_cache *cache, const char *scope, const char *key)
{
    struct scope *found = find_scope(cache, scope);
    struct rendezvous_blob *blob = found == NULL ? NULL : map_remove(&found->blobs, map_text(key));
    if (blob != NULL)
        release(cache, blob);
}

void rendezvous_cache_forget(struct rendezvous_cache *cache, const char *scope)
{
    if (find_scope(cache, scope) == NULL && cache->scopes.count == RENDEZVOUS_CACHE_SCOPES_MAX) {
        rendezvous_cache_reset(cache);
        return;
    }
    struct scope *found = get_scope(cache, scope);
    size_t at = 0;
    for (struct rendezvous_blob *blob = map_next(&found->blobs, &at); blob != NULL;
         blob = map_next(&found->blobs, &at))
        release(cache, blob);
    map_clear(&found->blobs, NULL);
    found->generation = ++cache->generation;
}

void rendezvous_cache_reset(struct rendezvous_cache *cache)
{
    map_clear(&cache->scopes, scope_free);
    cache->memory = 0;
    cache->unknown = ++cache->generation;
}
