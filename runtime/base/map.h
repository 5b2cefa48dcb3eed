/* SPDX-License-Identifier: Apache-2.0 */
/* Hash tables, and the fast hash for them. The hash protects against nobody who chooses the bytes;
 * for that there is base/sha256.h. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HASH_START UINT64_C(0xcbf29ce484222325)

/* FNV-1a with 64 bits, which also tells whether two things are the same: the hash of what `hash` is
 * of, and these bytes behind it. Begin with HASH_START. */
static inline uint64_t hash_add(uint64_t hash, const void *bytes, size_t length)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* For a table whose size is a power of two: the low bits depend on all of the bytes. */
static inline size_t hash_of_bytes(const void *bytes, size_t length)
{
    uint64_t hash = hash_add(HASH_START, bytes, length);
    return (size_t)(hash ^ (hash >> 32));
}

/*
 * A hash table from texts, bytes or numbers to things of the caller. An all-zero struct is an empty
 * map. Values are never NULL. The map borrows the bytes of its keys: most often the value holds
 * them. Open addressing, at most two thirds full.
 */
struct map_key {
    union {
        const void *bytes;
        uint64_t number;
    };
    uint32_t length; /* MAP_NUMBER: not bytes */
    uint32_t hash;
};

struct map_slot {
    struct map_key key;
    void *value; /* NULL: free */
};

struct map {
    struct map_slot *slots; /* owned */
    size_t room, count;     /* room: 0 or a power of two */
};

#define MAP_NUMBER UINT32_MAX

static inline struct map_key map_bytes(const void *bytes, size_t length)
{
    return (struct map_key){
        {.bytes = bytes}, (uint32_t)length, (uint32_t)hash_of_bytes(bytes, length)};
}

static inline struct map_key map_text(const char *text)
{
    return map_bytes(text, strlen(text));
}

static inline struct map_key map_number(uint64_t number)
{
    uint32_t hash = (uint32_t)(number * UINT64_C(0x9e3779b97f4a7c15) >> 32);
    return (struct map_key){{.number = number}, MAP_NUMBER, hash};
}

/* Frees each value with `free_value`, unless that is NULL. The map is empty then. */
void map_clear(struct map *map, void (*free_value)(void *value));

/* NULL: the key is not in the map. */
void *map_get(const struct map *map, struct map_key key);
/* The same, for a caller that changes the value. Valid until the map changes. */
struct map_slot *map_find(const struct map *map, struct map_key key);

/* Returns the value that was there before, or NULL. The bytes of the key must live until it is
 * removed, or put again. */
void *map_put(struct map *map, struct map_key key, void *value);

/* Returns the value, or NULL. */
void *map_remove(struct map *map, struct map_key key);

/* The values, one after the other, in any order; NULL: those were all. Begin with `*at` 0. The map
 * must not change meanwhile. */
void *map_next(const struct map *map, size_t *at);
