/* SPDX-License-Identifier: Apache-2.0 */
/* Which code computes a hash that has just begun. For tests. */
#pragma once

#include "base/sha256.h"

static inline void sha256_use_plain(struct sha256 *hash)
{
    hash->way = SHA256_PLAIN;
}

/* false: this processor does not have them, and the hash is a plain one. */
bool sha256_use_instructions(struct sha256 *hash);
