/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SHA-256 (FIPS 180-4) of bytes in memory. There are two reasons not to use a cryptographic
 * library. To load one for the hash of one file would cost more than the hash itself, at every
 * start. And the agent for other hosts depends only on libc.
 *
 * Much at once is hashed by the SHA instructions of x86-64, if this processor has them: about six
 * times as fast. To ask for them is slow in a virtual machine, so a hash asks once, and a small one
 * does not.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHA256_TEXT_ROOM 65

enum { SHA256_BLOCK = 64, SHA256_SIZE = 32, HMAC_SIZE = SHA256_SIZE };

/* An unfinished hash. Its fields are private. */
struct sha256 {
    uint32_t state[8];
    uint64_t length;
    uint8_t block[SHA256_BLOCK]; /* the bytes since the last full block */
    enum { SHA256_NOT_ASKED, SHA256_PLAIN, SHA256_INSTRUCTIONS } way;
};

void sha256_begin(struct sha256 *hash);
void sha256_add(struct sha256 *hash, const void *bytes, size_t length);
void sha256_end(struct sha256 *hash,
                uint8_t out[SHA256_SIZE]); /* call sha256_begin before you add more */

/* The hash of all the bytes at once: hexadecimal digits and a NUL. */
void sha256_text(const void *bytes, size_t length, char out[SHA256_TEXT_ROOM]);

/* HMAC-SHA256 (RFC 2104) of bytes in memory. */
void hmac_sha256(const void *key, size_t key_length, const void *bytes, size_t length,
                 uint8_t out[HMAC_SIZE]);

/* Takes the same time, wherever the two differ. */
bool hmac_equal(const uint8_t one[HMAC_SIZE], const uint8_t other[HMAC_SIZE]);
