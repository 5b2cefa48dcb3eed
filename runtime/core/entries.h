/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The root's table of entries. Those of a tensor that has a number in the cache are found by the
 * number, all others by their key. While an entry exists, a number keeps its tensor
 * (core/numbers.h), so the entry may borrow the request of the cache.
 */
#pragma once

#include "core/cache.h"
#include "core/entry.h"

struct entries {
    struct map by_key;          /* without a number -> struct entry */
    struct entry **by_id;       /* with one */
    struct entry *first, *last; /* all, in the order of their coming */
    struct entry *spare;        /* for later use: a list */
};

void entries_init(struct entries *entries, size_t capacity);
void entries_destroy(struct entries *entries);

/* `id` is the number of the tensor in the cache, or NO_ID. NULL: there is not such an entry. */
struct entry *entries_find(const struct entries *entries, size_t id, const char *key);

/* `borrowed`: the request is that of the cache. */
struct entry *entries_add(struct entries *entries, size_t id, const struct request *request,
                          bool borrowed, int64_t now_ns);
void entries_remove(struct entries *entries, struct entry *entry);
