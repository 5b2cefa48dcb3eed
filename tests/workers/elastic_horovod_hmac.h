/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HMAC-SHA256 (FIPS 180-4, RFC 2104) for short messages. The launcher takes it from OpenSSL; this
 * one is written from the standard, so that the two check each other.
 */
#pragma once

#include "worker.h"

enum { SHA_SIZE = 32, SHA_BLOCK = 64, HMAC_MESSAGE_MAX = 8192 };

static uint32_t sha_turn(uint32_t word, int by)
{
    return word >> by | word << (32 - by);
}

/* The first 32 bits behind the point of the n-th prime's square or cube root: the constants of the
 * standard, found by bisection in whole numbers. */
static uint32_t sha_root(unsigned prime, bool cube)
{
    uint64_t low = 0, high = (uint64_t)32 << 32;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        unsigned __int128 power = (unsigned __int128)middle * middle;
        /* scaled by 2^64 for the square, by 2^96 for the cube; the latter fits since middle < 2^36
         */
        bool over = cube ? power * middle > (unsigned __int128)prime << 96
                         : power > (unsigned __int128)prime << 64;
        low = over ? low : middle;
        high = over ? middle : high;
    }
    return (uint32_t)low;
}

static void sha_constants(uint32_t start[8], uint32_t k[64])
{
    unsigned prime = 1;
    for (int i = 0; i < 64; i++) {
        bool found = false;
        while (!found) {
            found = true;
            prime++;
            for (unsigned d = 2; d * d <= prime; d++)
                found = found && prime % d != 0;
        }
        k[i] = sha_root(prime, true);
        if (i < 8)
            start[i] = sha_root(prime, false);
    }
}

static void sha_block(uint32_t state[8], const uint32_t k[64], const unsigned char *block)
{
    uint32_t w[64], v[8];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + w[i - 7] + (sha_turn(a, 7) ^ sha_turn(a, 18) ^ a >> 3) +
               (sha_turn(b, 17) ^ sha_turn(b, 19) ^ b >> 10);
    }
    memcpy(v, state, sizeof(v));
    for (int i = 0; i < 64; i++) {
        uint32_t choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
        uint32_t majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
        uint32_t one = v[7] + (sha_turn(v[4], 6) ^ sha_turn(v[4], 11) ^ sha_turn(v[4], 25)) +
                       choice + k[i] + w[i];
        uint32_t two = (sha_turn(v[0], 2) ^ sha_turn(v[0], 13) ^ sha_turn(v[0], 22)) + majority;
        memmove(v + 1, v, 7 * sizeof(*v));
        v[4] += one;
        v[0] = one + two;
    }
    for (int i = 0; i < 8; i++)
        state[i] += v[i];
}

/* The digest of head and tail, one behind the other; together at most HMAC_MESSAGE_MAX bytes. */
static void sha256(const void *head, size_t head_length, const void *tail, size_t tail_length,
                   unsigned char digest[SHA_SIZE])
{
    unsigned char text[HMAC_MESSAGE_MAX + 4 * SHA_BLOCK] = {0};
    uint32_t state[8], k[64];
    size_t length = head_length + tail_length;
    size_t padded = (length + 8) / SHA_BLOCK * SHA_BLOCK + SHA_BLOCK;
    if (padded > sizeof(text))
        abort();
    memcpy(text, head, head_length);
    if (tail_length > 0)
        memcpy(text + head_length, tail, tail_length);
    text[length] = 0x80;
    for (int i = 0; i < 8; i++)
        text[padded - 1 - (size_t)i] = (unsigned char)((uint64_t)length * 8 >> 8 * i);
    sha_constants(state, k);
    for (size_t at = 0; at < padded; at += SHA_BLOCK)
        sha_block(state, k, text + at);
    for (int i = 0; i < SHA_SIZE; i++)
        digest[i] = (unsigned char)(state[i / 4] >> (24 - 8 * (i % 4)));
}

/* The key has SHA_SIZE bytes, as Horovod's have. */
static void hmac_sha256(const unsigned char key[SHA_SIZE], const void *message, size_t length,
                        unsigned char digest[SHA_SIZE])
{
    unsigned char inner[SHA_BLOCK], outer[SHA_BLOCK];
    for (int i = 0; i < SHA_BLOCK; i++) {
        inner[i] = (i < SHA_SIZE ? key[i] : 0) ^ 0x36;
        outer[i] = (i < SHA_SIZE ? key[i] : 0) ^ 0x5c;
    }
    sha256(inner, sizeof(inner), message, length, digest);
    sha256(outer, sizeof(outer), digest, SHA_SIZE, digest);
}
