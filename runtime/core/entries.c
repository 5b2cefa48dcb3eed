/* SPDX-License-Identifier: Apache-2.0 */
#include "core/entries.h"

#include <stdlib.h>

#include "base/mem.h"

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
        entry = entry_create();
    entry_begin(entry, id, request, borrowed, now_ns);
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
