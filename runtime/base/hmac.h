/* SPDX-License-Identifier: Apache-2.0 */
/* HMAC-SHA256 (RFC 2104) of bytes in memory. base/sha256.h says why this is not a library's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sha256.h"

enum { HMAC_SIZE = SHA256_SIZE };

void hmac_sha256(const void *key, size_t key_length, const void *bytes, size_t length,
                 uint8_t out[HMAC_SIZE]);

/* Takes the same time, wherever the two differ. */
bool hmac_equal(const uint8_t one[HMAC_SIZE], const uint8_t other[HMAC_SIZE]);
