/* SPDX-License-Identifier: Apache-2.0 */
#include "core/numbers.h"

#include <stdlib.h>

#include "base/mem.h"

enum { PART_THAT_LEAVES = 16 };

void numbers_init(struct numbers *numbers, size_t capacity)
{
    *numbers = (struct numbers){.used = mem_array(capacity, sizeof *numbers->used)};
    cache_init(&numbers->cache, capacity);
}

void numbers_destroy(struct numbers *numbers)
{
    cache_destroy(&numbers->cache);
    free(numbers->used);
    bits_destroy(&numbers->leaving);
}

size_t numbers_find(const struct numbers *numbers, const char *key)
{
    const struct cache_slot *slot = cache_find(&numbers->cache, key);
    return slot == NULL ? NO_ID : slot->id;
}

bool numbers_known(struct numbers *numbers, size_t id, const struct request *request, uint64_t now)
{
    const struct request *known = id == NO_ID ? NULL : cache_get(&numbers->cache, id);
    if (known == NULL || bits_test(&numbers->leaving, id) || known->priority != request->priority ||
        request_difference(known, request) != NULL)
        return false;
    numbers->used[id] = now;
    return true;
}

size_t numbers_assign(struct numbers *numbers, const struct request *request, uint64_t now)
{
    const struct cache_slot *slot = cache_find(&numbers->cache, request->key);
    if (!request_has_tensor(request) || (slot != NULL && bits_test(&numbers->leaving, slot->id)))
        return SIZE_MAX;
    size_t id = slot != NULL ? slot->id : cache_free_id(&numbers->cache);
    if (id == SIZE_MAX) {
        numbers->wanted = numbers->cache.capacity > 0;
        return id;
    }
    cache_put(&numbers->cache, id, request);
    numbers->used[id] = now;
    return id;
}

void numbers_reclaim(struct numbers *numbers, uint64_t seen, const struct entries *entries)
{
    if (seen < numbers->left_at)
        return;
    for (size_t id = bits_next(&numbers->leaving, 0); id != SIZE_MAX;
         id = bits_next(&numbers->leaving, id + 1)) {
        if (entries->by_id[id] != NULL)
            continue;
        cache_drop(&numbers->cache, id);
        bits_unset(&numbers->leaving, id);
    }
}

/* The number that was used least recently, among those that may leave. */
static size_t oldest(const struct numbers *numbers, uint64_t now, const struct entries *entries)
{
    size_t found = SIZE_MAX;
    for (size_t id = 0; id < numbers->cache.capacity; id++) {
        if (cache_get(&numbers->cache, id) == NULL || bits_test(&numbers->leaving, id) ||
            numbers->used[id] >= now || entries->by_id[id] != NULL)
            continue;
        if (found == SIZE_MAX || numbers->used[id] < numbers->used[found])
            found = id;
    }
    return found;
}

bool numbers_make_room(struct numbers *numbers, uint64_t now, const struct entries *entries)
{
    bool wanted = numbers->wanted;
    numbers->wanted = false;
    if (!wanted || bits_any(&numbers->leaving))
        return false;
    for (size_t i = 0; i < numbers->cache.capacity / PART_THAT_LEAVES + 1; i++) {
        size_t id = oldest(numbers, now, entries);
        if (id != SIZE_MAX)
            bits_set(&numbers->leaving, id);
    }
    numbers->left_at = now;
    return bits_any(&numbers->leaving);
}
