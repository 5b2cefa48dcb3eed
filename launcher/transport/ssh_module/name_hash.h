/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names as known_hosts hides them, "|1|SALT|HASH": the HMAC-SHA1 of the name under a salt of the
 * line's own. They cannot be looked up: each line is tried with each name, so a try must cost
 * little.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "transport/ssh_module/fields.h"

#define NAME_HASH_SIZE 20 /* bytes of a salt, and of a hash */

struct name_hash {
    unsigned char salt[NAME_HASH_SIZE], hash[NAME_HASH_SIZE];
};

struct name_hasher; /* what OpenSSL needs for it, made once for many */

struct name_hasher *name_hasher_create(void);
void name_hasher_destroy(struct name_hasher *hasher); /* accepts NULL */

/* False: this is not such a field. */
bool name_hash_parse(struct name_hash *out, struct byte_view field);

/* Fills the hash of `name` under the salt that is in it. -1: OpenSSL has no SHA-1. */
int name_hash_fill(struct name_hasher *hasher, struct name_hash *out, const char *name);

bool name_hash_matches(struct name_hasher *hasher, const struct name_hash *hash, const char *name);

/* Writes it as a field. -1: over the buffer's limit. */
int name_hash_put(const struct name_hash *hash, struct buf *out);
