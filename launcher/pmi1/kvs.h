/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A key-value space of PMI-1: text keys to text values, in the order in which they arrived.
 *
 * A key is written once: PMI-1 has no overwriting, and a second value for a key would be a race
 * between readers on different nodes. KVS_BYTES_MAX limits the whole space.
 */
#pragma once

#include <stddef.h>

#define KVS_BYTES_MAX ((size_t)256 << 20)

enum kvs_result { KVS_OK, KVS_DUPLICATE, KVS_FULL };

struct kvs;

struct kvs *kvs_create(void);
void kvs_destroy(struct kvs *kvs);

/* Keys and values are copied. KVS_DUPLICATE leaves the first value in place. */
enum kvs_result kvs_put(struct kvs *kvs, const char *key, const char *value);
const char *kvs_get(const struct kvs *kvs, const char *key); /* borrowed; NULL: no such key */

size_t kvs_count(const struct kvs *kvs);
const char *kvs_key_at(const struct kvs *kvs, size_t index); /* borrowed; index < count */
const char *kvs_value_at(const struct kvs *kvs, size_t index);
