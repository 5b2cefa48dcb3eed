/* SPDX-License-Identifier: Apache-2.0 */
/* Entries in an array (their order is what getbyidx walks), and an open-addressed table of indices
 * into it that is kept at most half full. */
#include "pmi1/kvs.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

#define FIRST_SLOTS 64

struct entry {
    char *key; /* owned; the value follows the key's NUL in the same allocation */
    const char *value;
    uint32_t hash;
};

struct kvs {
    struct entry *entries;
    size_t count, room;
    uint32_t *slots; /* index + 1 of the entry; 0: empty */
    size_t slot_count;
    size_t bytes;
};

struct kvs *kvs_create(void)
{
    struct kvs *kvs = mem_alloc(sizeof(*kvs));
    kvs->slot_count = FIRST_SLOTS;
    kvs->slots = mem_array(kvs->slot_count, sizeof(*kvs->slots));
    return kvs;
}

void kvs_destroy(struct kvs *kvs)
{
    if (kvs == NULL)
        return;
    for (size_t i = 0; i < kvs->count; i++)
        free(kvs->entries[i].key);
    free(kvs->entries);
    free(kvs->slots);
    free(kvs);
}

/* The slot that holds the key, or the empty one where it belongs. */
static size_t find_slot(const struct kvs *kvs, const char *key, uint32_t hash)
{
    size_t slot = hash & (kvs->slot_count - 1);
    while (kvs->slots[slot] != 0) {
        const struct entry *entry = &kvs->entries[kvs->slots[slot] - 1];
        if (entry->hash == hash && strcmp(entry->key, key) == 0)
            break;
        slot = (slot + 1) & (kvs->slot_count - 1);
    }
    return slot;
}

static void grow(struct kvs *kvs)
{
    free(kvs->slots);
    kvs->slot_count *= 2;
    kvs->slots = mem_array(kvs->slot_count, sizeof(*kvs->slots));
    for (size_t i = 0; i < kvs->count; i++) {
        size_t slot = kvs->entries[i].hash & (kvs->slot_count - 1);
        while (kvs->slots[slot] != 0)
            slot = (slot + 1) & (kvs->slot_count - 1);
        kvs->slots[slot] = (uint32_t)(i + 1);
    }
}

enum kvs_result kvs_put(struct kvs *kvs, const char *key, const char *value)
{
    uint32_t hash = (uint32_t)hash_of_text(key);
    size_t slot = find_slot(kvs, key, hash);
    if (kvs->slots[slot] != 0)
        return KVS_DUPLICATE;
    size_t key_size = strlen(key) + 1;
    size_t value_size = strlen(value) + 1;
    if (kvs->bytes + key_size + value_size > KVS_BYTES_MAX)
        return KVS_FULL;
    if (kvs->count == kvs->room) {
        kvs->room = kvs->room > 0 ? kvs->room * 2 : FIRST_SLOTS;
        kvs->entries = mem_resize_array(kvs->entries, kvs->room, sizeof(*kvs->entries));
    }
    char *pair = mem_alloc(key_size + value_size);
    memcpy(pair, key, key_size);
    memcpy(pair + key_size, value, value_size);
    kvs->entries[kvs->count++] = (struct entry){pair, pair + key_size, hash};
    kvs->slots[slot] = (uint32_t)kvs->count;
    kvs->bytes += key_size + value_size;
    if (kvs->count * 2 > kvs->slot_count)
        grow(kvs);
    return KVS_OK;
}

const char *kvs_get(const struct kvs *kvs, const char *key)
{
    size_t slot = find_slot(kvs, key, (uint32_t)hash_of_text(key));
    return kvs->slots[slot] == 0 ? NULL : kvs->entries[kvs->slots[slot] - 1].value;
}

size_t kvs_count(const struct kvs *kvs)
{
    return kvs->count;
}

const char *kvs_key_at(const struct kvs *kvs, size_t index)
{
    return kvs->entries[index].key;
}

const char *kvs_value_at(const struct kvs *kvs, size_t index)
{
    return kvs->entries[index].value;
}
