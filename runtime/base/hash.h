/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FNV-1a with 64 bits: a fast hash for tables, and for telling whether two things are the same. It
 * protects against nobody who chooses the bytes. base/sha256.h does that.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HASH_START UINT64_C(0xcbf29ce484222325)

/* The hash of what `hash` is of, and these bytes behind it. Begin with HASH_START. */
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

static inline size_t hash_of_text(const char *text)
{
    return hash_of_bytes(text, strlen(text));
}
