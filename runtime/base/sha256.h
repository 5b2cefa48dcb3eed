/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SHA-256 (FIPS 180-4) of bytes in memory. Our own, since linking a cryptographic library for the
 * hash of one file would cost every start of hvdrun more than the hash itself, and the agent that
 * is sent to other hosts depends on libc alone.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SHA256_TEXT_ROOM 65

enum { SHA256_BLOCK = 64, SHA256_SIZE = 32 };

/* A hash in the making: its fields are nobody else's. */
struct sha256 {
    uint32_t state[8];
    uint64_t length;
    uint8_t block[SHA256_BLOCK]; /* what came since the last full block */
};

void sha256_begin(struct sha256 *hash);
void sha256_add(struct sha256 *hash, const void *bytes, size_t length);
void sha256_end(struct sha256 *hash, uint8_t out[SHA256_SIZE]); /* begin again before more */

/* Of all the bytes at once: hexadecimal digits and a NUL. */
void sha256_text(const void *bytes, size_t length, char out[SHA256_TEXT_ROOM]);
