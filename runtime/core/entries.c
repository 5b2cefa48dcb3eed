/* SPDX-License-Identifier: Apache-2.0 */
#include "core/entries.h"

#include <stdlib.h>

#include "base/mem.h"

enum { PART_THAT_LEAVES = 16, RANKS_SHOWN = 16 };

/* ---- Numbers --------------------------------------------------------------------------------- */

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

/* ---- An entry -------------------------------------------------------------------------------- */

/* It may be used for another operation. */
static void entry_end(struct entry *entry)
{
    if (!entry->borrowed)
        request_destroy(&entry->request);
    request_destroy(&entry->other);
    bits_clear(&entry->have);
    bits_clear(&entry->others);
    bits_clear(&entry->apart);
    entry->request = (struct request){0};
    entry->difference = NULL;
    entry->ready = 0;
}

static void entry_destroy(struct entry *entry)
{
    entry_end(entry);
    bits_destroy(&entry->have);
    bits_destroy(&entry->others);
    bits_destroy(&entry->apart);
    free(entry);
}

void entry_own(struct entry *entry)
{
    if (entry->borrowed)
        entry->request = request_copy(&entry->request);
    entry->borrowed = false;
}

void entry_add(struct entry *entry, int rank, const struct request *request)
{
    bits_set(&entry->have, (size_t)rank);
    if (request->priority > entry->request.priority)
        entry->request.priority = request->priority;
    const char *difference = request_difference(&entry->request, request);
    if (difference == NULL)
        return;
    if (entry->other.key == NULL) {
        entry->other = request_copy(request);
        entry->difference = difference;
    }
    bool like_other = request_difference(&entry->other, request) == NULL;
    bits_set(like_other ? &entry->others : &entry->apart, (size_t)rank);
}

void entry_describe_ranks(const struct bits *which, const struct core_config *config,
                          struct buf *out)
{
    size_t count = bits_size(which), shown = 0;
    buf_puts(out, count == 1 ? "rank" : "ranks");
    for (size_t rank = bits_next(which, 0); rank < (size_t)config->size;
         rank = bits_next(which, rank + 1)) {
        if (shown == RANKS_SHOWN) {
            buf_printf(out, " and %zu more", count - shown);
            return;
        }
        const char *before = shown == 0 ? " " : shown + 1 == count ? " and " : ", ";
        buf_printf(out, "%s%d", before, config->ranks[rank]);
        shown++;
    }
}

/* Other operations need the data of a rank that has joined. */
static bool needs_all(enum kind kind)
{
    return kind != KIND_ALLREDUCE && kind != KIND_BARRIER;
}

void entry_describe_error(const struct entry *entry, const struct bits *joined,
                          const struct core_config *config, struct buf *out)
{
    const struct request *first = &entry->request;
    AUTO_BITS struct bits same = {0}, away = {0};
    bits_copy(&away, joined);
    bits_remove(&away, &entry->have);
    if (entry->difference != NULL) {
        bits_copy(&same, &entry->have);
        bits_remove(&same, &entry->others);
        bits_remove(&same, &entry->apart);
        buf_printf(out, "%s '%.200s': the %s differ: ", kind_text(first->kind), request_name(first),
                   entry->difference);
        request_describe(first, entry->difference, out);
        buf_puts(out, " on ");
        entry_describe_ranks(&same, config, out);
        buf_puts(out, ", and ");
        request_describe(&entry->other, entry->difference, out);
        buf_puts(out, " on ");
        entry_describe_ranks(&entry->others, config, out);
        if (bits_any(&entry->apart)) {
            buf_puts(out, "; ");
            entry_describe_ranks(&entry->apart, config, out);
            buf_puts(out,
                     bits_size(&entry->apart) == 1 ? " differs from both" : " differ from both");
        }
    } else if (needs_all(first->kind) && bits_any(&away)) {
        buf_printf(out, "%s '%.200s': it needs all ranks, and ", kind_text(first->kind),
                   request_name(first));
        entry_describe_ranks(&away, config, out);
        buf_puts(out, bits_size(&away) == 1 ? " has joined" : " have joined");
    }
}

/* ---- The table ------------------------------------------------------------------------------- */

void entries_init(struct entries *entries, size_t capacity)
{
    *entries = (struct entries){.by_id = mem_array(capacity, sizeof(struct entry *))};
}

static void destroy_list(struct entry *entry)
{
    while (entry != NULL) {
        struct entry *next = entry->next;
        entry_destroy(entry);
        entry = next;
    }
}

void entries_destroy(struct entries *entries)
{
    destroy_list(entries->first);
    destroy_list(entries->spare);
    map_clear(&entries->by_key, NULL);
    free(entries->by_id);
    *entries = (struct entries){0};
}

struct entry *entries_find(const struct entries *entries, size_t id, const char *key)
{
    return id != NO_ID ? entries->by_id[id] : map_get(&entries->by_key, map_text(key));
}

struct entry *entries_add(struct entries *entries, size_t id, const struct request *request,
                          bool borrowed, int64_t now_ns)
{
    struct entry *entry = entries->spare;
    if (entry != NULL)
        entries->spare = entry->next;
    else
        entry = mem_alloc(sizeof *entry);
    entry->id = id;
    entry->request = borrowed ? *request : request_copy(request);
    entry->borrowed = borrowed;
    entry->since_ns = entry->warned_ns = now_ns;
    if (id != NO_ID)
        entries->by_id[id] = entry;
    else
        map_put(&entries->by_key, map_text(entry->request.key), entry);
    entry->next = NULL;
    entry->previous = entries->last;
    if (entries->last == NULL)
        entries->first = entry;
    else
        entries->last->next = entry;
    entries->last = entry;
    return entry;
}

void entries_remove(struct entries *entries, struct entry *entry)
{
    if (entry->previous == NULL)
        entries->first = entry->next;
    else
        entry->previous->next = entry->next;
    if (entry->next == NULL)
        entries->last = entry->previous;
    else
        entry->next->previous = entry->previous;
    if (entry->id != NO_ID)
        entries->by_id[entry->id] = NULL;
    else
        map_remove(&entries->by_key, map_text(entry->request.key));
    entry_end(entry);
    entry->next = entries->spare;
    entries->spare = entry;
}
