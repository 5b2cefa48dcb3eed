/* SPDX-License-Identifier: Apache-2.0 */
#include "base/map.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/mem.h"

enum { ROOM_FIRST = 16 };

void map_clear(struct map *map, void (*free_value)(void *value))
{
    for (size_t i = 0; i < map->room && free_value != NULL; i++)
        if (map->slots[i].value != NULL)
            free_value(map->slots[i].value);
    free(map->slots);
    *map = (struct map){0};
}

static bool same(const struct map_key *a, const struct map_key *b)
{
    if (a->hash != b->hash || a->length != b->length)
        return false;
    return a->length == MAP_NUMBER ? a->number == b->number
                                   : memcmp(a->bytes, b->bytes, a->length) == 0;
}

/* Where the key is, or would be. */
static struct map_slot *place(const struct map *map, const struct map_key *key)
{
    size_t at = key->hash & (map->room - 1);
    while (map->slots[at].value != NULL && !same(&map->slots[at].key, key))
        at = (at + 1) & (map->room - 1);
    return &map->slots[at];
}

struct map_slot *map_find(const struct map *map, struct map_key key)
{
    if (map->count == 0)
        return NULL;
    struct map_slot *slot = place(map, &key);
    return slot->value == NULL ? NULL : slot;
}

void *map_get(const struct map *map, struct map_key key)
{
    const struct map_slot *slot = map_find(map, key);
    return slot == NULL ? NULL : slot->value;
}

static void grow(struct map *map)
{
    struct map bigger = {.room = map->room == 0 ? ROOM_FIRST : 2 * map->room, .count = map->count};
    bigger.slots = mem_array(bigger.room, sizeof(*bigger.slots));
    for (size_t i = 0; i < map->room; i++) {
        size_t at = map->slots[i].key.hash & (bigger.room - 1);
        if (map->slots[i].value == NULL)
            continue;
        while (bigger.slots[at].value != NULL)
            at = (at + 1) & (bigger.room - 1);
        bigger.slots[at] = map->slots[i];
    }
    free(map->slots);
    *map = bigger;
}

void *map_put(struct map *map, struct map_key key, void *value)
{
    if (3 * (map->count + 1) > 2 * map->room)
        grow(map);
    struct map_slot *slot = place(map, &key);
    void *old = slot->value;
    *slot = (struct map_slot){key, value};
    map->count += old == NULL;
    return old;
}

void *map_remove(struct map *map, struct map_key key)
{
    struct map_slot *slot = map_find(map, key);
    if (slot == NULL)
        return NULL;
    void *value = slot->value;
    size_t hole = (size_t)(slot - map->slots), mask = map->room - 1;
    map->count--;
    /* Those that follow without a gap move into the hole, unless it is before their first choice.
     */
    for (size_t next = (hole + 1) & mask; map->slots[next].value != NULL;
         next = (next + 1) & mask) {
        size_t wanted = map->slots[next].key.hash & mask;
        if (((next - wanted) & mask) < ((next - hole) & mask))
            continue;
        map->slots[hole] = map->slots[next];
        hole = next;
    }
    map->slots[hole] = (struct map_slot){.value = NULL};
    return value;
}

void *map_next(const struct map *map, size_t *at)
{
    while (*at < map->room) {
        void *value = map->slots[(*at)++].value;
        if (value != NULL)
            return value;
    }
    return NULL;
}
