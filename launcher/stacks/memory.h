/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of another process, as the decoders of this room see it: a function that reads bytes
 * at an address. In tests it is an image. Nothing in that memory is trusted, and it can change
 * between two reads.
 *
 * All decoders together have a budget. When it is used up, every read fails. So a hostile image
 * costs a bounded time, whatever it makes the decoders follow.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MEMORY_BUDGET ((size_t)64 << 20)

struct memory {
    /* Reads exactly `length` bytes. -1: it cannot. */
    int (*read)(void *context, uint64_t address, void *out, size_t length);
    void *context;
    size_t budget; /* bytes; each read costs its length and MEMORY_READ_COST */
};

#define MEMORY_READ_COST 64

/* All return -1 when the memory cannot be read. `*out` is then unchanged or zero. */
int memory_read(struct memory *memory, uint64_t address, void *out, size_t length);
int memory_u64(struct memory *memory, uint64_t address, uint64_t *out);
int memory_i32(struct memory *memory, uint64_t address, int32_t *out);
/* A pointer to a struct; NULL is allowed. -1 also if it cannot be one. */
int memory_pointer(struct memory *memory, uint64_t address, uint64_t *out);

/* An address that a pointer to a struct can have: in the user's half, aligned to 8 bytes. */
bool memory_is_pointer(uint64_t value);

/* Numbers inside of bytes that were read. All targets are little-endian, as the reader is. */
uint64_t memory_u64_at(const unsigned char *bytes);
uint32_t memory_u32_at(const unsigned char *bytes);
