/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hmac.h"

#include <string.h>

/* The hash of the padded key, with each byte XORed with `mask`, followed by the bytes. */
static void keyed_hash(const uint8_t key[SHA256_BLOCK], uint8_t mask, const void *bytes,
                       size_t length, uint8_t out[SHA256_SIZE])
{
    struct sha256 hash;
    uint8_t masked[SHA256_BLOCK];
    for (size_t i = 0; i < SHA256_BLOCK; i++)
        masked[i] = key[i] ^ mask;
    sha256_begin(&hash);
    sha256_add(&hash, masked, sizeof(masked));
    sha256_add(&hash, bytes, length);
    sha256_end(&hash, out);
}

void hmac_sha256(const void *key, size_t key_length, const void *bytes, size_t length,
                 uint8_t out[HMAC_SIZE])
{
    uint8_t padded[SHA256_BLOCK] = {0}, inner[SHA256_SIZE];
    if (key_length > SHA256_BLOCK) {
        struct sha256 hash;
        sha256_begin(&hash);
        sha256_add(&hash, key, key_length);
        sha256_end(&hash, padded);
    } else if (key_length > 0) {
        memcpy(padded, key, key_length);
    }
    keyed_hash(padded, 0x36, bytes, length, inner);
    keyed_hash(padded, 0x5c, inner, sizeof(inner), out);
}

bool hmac_equal(const uint8_t one[HMAC_SIZE], const uint8_t other[HMAC_SIZE])
{
    uint8_t difference = 0;
    for (size_t i = 0; i < HMAC_SIZE; i++)
        difference |= (uint8_t)(one[i] ^ other[i]);
    return difference == 0;
}
