/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of proxy alone. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "rendezvous/proxy.h"

/*
 * Blobs that the driver's store has already sent to this node. With it a mesh of n ranks fetches
 * each blob once per node, not twice per worker. Pure.
 *
 * It never returns a stale blob, although the driver does not notify it. The store empties one of
 * the plan's scopes only after *every* member has sent its DELETE. A rank of this node sends its
 * DELETE through this agent. So the cache forgets a scope at each DELETE in it. It does not
 * keep an answer to an earlier question either, because the generation of the scope has changed.
 * Workers read nothing between their DELETE and the next round, which begins only when all of them
 * are done. docs/internals/rendezvous.md has the whole argument.
 */
enum { RENDEZVOUS_CACHE_SCOPES_MAX = 4096 };

struct rendezvous_blob {
    size_t length;
    char bytes[];
};

struct rendezvous_cache;

/* Beyond `memory_limit` bytes it keeps nothing more; answers are then slower, not wrong. */
struct rendezvous_cache *rendezvous_cache_create(size_t memory_limit);
void rendezvous_cache_limit(struct rendezvous_cache *cache, size_t memory_limit);
void rendezvous_cache_destroy(struct rendezvous_cache *cache);

/* NULL: ask the driver. Borrowed until the next call that changes the cache. */
const struct rendezvous_blob *rendezvous_cache_get(const struct rendezvous_cache *cache,
                                                   const char *scope, const char *key);

/* Read it when you send a question, and pass it to _keep() with the answer. */
uint64_t rendezvous_cache_generation(const struct rendezvous_cache *cache, const char *scope);
void rendezvous_cache_keep(struct rendezvous_cache *cache, uint64_t generation, const char *scope,
                           const char *key, const void *bytes, size_t length);

void rendezvous_cache_remove(struct rendezvous_cache *cache, const char *scope, const char *key);
void rendezvous_cache_forget(struct rendezvous_cache *cache, const char *scope);
void rendezvous_cache_reset(struct rendezvous_cache *cache); /* every scope: a new epoch */
