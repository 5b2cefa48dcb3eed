/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blobs that the driver's store has already given to this node, so that a mesh of n ranks fetches
 * each of them once per node and not twice per worker. Pure.
 *
 * Why nothing stale comes out of it, with no word from the driver: the store empties one of the
 * plan's scopes only after *every* member has sent its DELETE, and a rank of this node sends its
 * DELETE through this agent. So a scope is forgotten whenever a DELETE in it passes by, and an
 * answer to a question from before that moment is not kept (the scope's generation has changed).
 * Workers read nothing between their DELETE and the next round, and the next round begins only when
 * all of them are done. docs/rendezvous.md has the whole argument.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { RENDEZVOUS_CACHE_MAX = 256 * 1024 * 1024, RENDEZVOUS_CACHE_SCOPES_MAX = 4096 };

struct rendezvous_blob {
    size_t length;
    char bytes[];
};

struct rendezvous_cache;

/* Past `memory_limit` bytes nothing more is kept; the answers are as right, only slower. */
struct rendezvous_cache *rendezvous_cache_create(size_t memory_limit);
void rendezvous_cache_limit(struct rendezvous_cache *cache, size_t memory_limit);
void rendezvous_cache_destroy(struct rendezvous_cache *cache);

/* NULL: ask the driver. Borrowed until the next call that changes the cache. */
const struct rendezvous_blob *rendezvous_cache_get(const struct rendezvous_cache *cache,
                                                   const char *scope, const char *key);

/* To be noted when a question is sent, and given to _keep() with its answer. */
uint64_t rendezvous_cache_generation(const struct rendezvous_cache *cache, const char *scope);
void rendezvous_cache_keep(struct rendezvous_cache *cache, uint64_t generation, const char *scope,
                           const char *key, const void *bytes, size_t length);

void rendezvous_cache_remove(struct rendezvous_cache *cache, const char *scope, const char *key);
void rendezvous_cache_forget(struct rendezvous_cache *cache, const char *scope);
void rendezvous_cache_reset(struct rendezvous_cache *cache); /* every scope: a new epoch */
