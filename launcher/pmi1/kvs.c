/* SPDX-License-Identifier: Apache-2.0 */
#include "pmi1/kvs.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"

struct entry {
    const char *value; /* follows the key */
    char key[];
};

struct kvs {
    struct entry **entries; /* their order is what getbyidx walks */
    size_t count, room;
    struct map by_key;
    size_t bytes;
};

struct kvs *kvs_create(void)
{
    return mem_alloc(sizeof(struct kvs));
}

void kvs_destroy(struct kvs *kvs)
{
    if (kvs == NULL)
        return;
    map_clear(&kvs->by_key, free);
    free(kvs->entries);
    free(kvs);
}

enum kvs_result kvs_put(struct kvs *kvs, const char *key, const char *value)
{
    struct map_key by = map_text(key);
    if (map_get(&kvs->by_key, by) != NULL)
        return KVS_DUPLICATE;
    size_t key_size = strlen(key) + 1;
    size_t value_size = strlen(value) + 1;
    if (kvs->bytes + key_size + value_size > KVS_BYTES_MAX)
        return KVS_FULL;
    kvs->entries = mem_one_more(kvs->entries, kvs->count, &kvs->room, sizeof(*kvs->entries));
    struct entry *entry = mem_alloc(sizeof(*entry) + key_size + value_size);
    memcpy(entry->key, key, key_size);
    entry->value = memcpy(entry->key + key_size, value, value_size);
    kvs->entries[kvs->count++] = entry;
    kvs->bytes += key_size + value_size;
    by.bytes = entry->key;
    map_put(&kvs->by_key, by, entry);
    return KVS_OK;
}

const char *kvs_get(const struct kvs *kvs, const char *key)
{
    const struct entry *entry = map_get(&kvs->by_key, map_text(key));
    return entry == NULL ? NULL : entry->value;
}

size_t kvs_count(const struct kvs *kvs)
{
    return kvs->count;
}

const char *kvs_key_at(const struct kvs *kvs, size_t index)
{
    return kvs->entries[index]->key;
}

const char *kvs_value_at(const struct kvs *kvs, size_t index)
{
    return kvs->entries[index]->value;
}
