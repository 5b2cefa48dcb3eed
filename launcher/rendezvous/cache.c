/* SPDX-License-Identifier: Apache-2.0 */
#include "rendezvous/cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "rendezvous/table.h"

enum { BLOB_COST = 128 };

struct scope {
    struct rendezvous_table *blobs;
    uint64_t generation;
};

struct rendezvous_cache {
    struct rendezvous_table *scopes;
    uint64_t generation; /* the newest given out */
    uint64_t unknown;    /* generation of the scopes that have no record */
    size_t memory, memory_limit;
};

struct rendezvous_cache *rendezvous_cache_create(size_t memory_limit)
{
    struct rendezvous_cache *cache = mem_alloc(sizeof(*cache));
    cache->scopes = rendezvous_table_create();
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
    rendezvous_table_destroy(scope->blobs, free);
    free(scope);
}

void rendezvous_cache_destroy(struct rendezvous_cache *cache)
{
    if (cache == NULL)
        return;
    rendezvous_table_destroy(cache->scopes, scope_free);
    free(cache);
}

static struct scope *find_scope(const struct rendezvous_cache *cache, const char *name)
{
    return rendezvous_table_get(cache->scopes, name, strlen(name));
}

static struct scope *get_scope(struct rendezvous_cache *cache, const char *name)
{
    struct scope *scope = find_scope(cache, name);
    if (scope != NULL)
        return scope;
    scope = mem_alloc(sizeof(*scope));
    scope->blobs = rendezvous_table_create();
    scope->generation = cache->unknown;
    rendezvous_table_put(cache->scopes, name, strlen(name), scope);
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
    return found == NULL ? NULL : rendezvous_table_get(found->blobs, key, strlen(key));
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
    if (find_scope(cache, scope) == NULL &&
        rendezvous_table_count(cache->scopes) == RENDEZVOUS_CACHE_SCOPES_MAX)
        rendezvous_cache_reset(cache);
    struct rendezvous_blob *blob = mem_alloc(sizeof(*blob) + length);
    blob->length = length;
    if (length > 0)
        memcpy(blob->bytes, bytes, length);
    cache->memory += length + BLOB_COST;
    struct scope *owner = get_scope(cache, scope);
    struct rendezvous_blob *old = rendezvous_table_put(owner->blobs, key, strlen(key), blob);
    if (old != NULL)
        release(cache, old);
}

void rendezvous_cache_remove(struct rendezvous_cache *cache, const char *scope, const char *key)
{
    struct scope *found = find_scope(cache, scope);
    struct rendezvous_blob *blob =
        found == NULL ? NULL : rendezvous_table_remove(found->blobs, key, strlen(key));
    if (blob != NULL)
        release(cache, blob);
}

void rendezvous_cache_forget(struct rendezvous_cache *cache, const char *scope)
{
    if (find_scope(cache, scope) == NULL &&
        rendezvous_table_count(cache->scopes) == RENDEZVOUS_CACHE_SCOPES_MAX) {
        rendezvous_cache_reset(cache);
        return;
    }
    struct scope *found = get_scope(cache, scope);
    for (struct rendezvous_blob *blob = rendezvous_table_pop(found->blobs); blob != NULL;
         blob = rendezvous_table_pop(found->blobs))
        release(cache, blob);
    found->generation = ++cache->generation;
}

void rendezvous_cache_reset(struct rendezvous_cache *cache)
{
    rendezvous_table_destroy(cache->scopes, scope_free);
    cache->scopes = rendezvous_table_create();
    cache->memory = 0;
    cache->unknown = ++cache->generation;
}
