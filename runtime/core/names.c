/* SPDX-License-Identifier: Apache-2.0 */
#include "core/names.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

enum { ROOM_MIN = 64 };

void names_destroy(struct names *names)
{
    free(names->slots);
    *names = (struct names){0};
}

/* Where the key is, or would be. */
static size_t place(const struct names *names, const char *key, size_t hashed)
{
    size_t at = hashed & (names->room - 1);
    for (; names->slots[at].key != NULL; at = (at + 1) & (names->room - 1))
        if (names->slots[at].hash == hashed && strcmp(names->slots[at].key, key) == 0)
            break;
    return at;
}

struct names_slot *names_find(const struct names *names, const char *key)
{
    if (names->count == 0)
        return NULL;
    struct names_slot *slot = &names->slots[place(names, key, hash_of_text(key))];
    return slot->key == NULL ? NULL : slot;
}

void *names_get(const struct names *names, const char *key)
{
    const struct names_slot *slot = names_find(names, key);
    return slot == NULL ? NULL : slot->value;
}

/* The first free place for a key that is not in the table. */
static void insert(struct names *names, const struct names_slot *slot)
{
    size_t at = slot->hash & (names->room - 1);
    while (names->slots[at].key != NULL)
        at = (at + 1) & (names->room - 1);
    names->slots[at] = *slot;
}

static void grow(struct names *names)
{
    struct names bigger = {.room = names->room == 0 ? ROOM_MIN : 2 * names->room,
                           .count = names->count};
    bigger.slots = mem_array(bigger.room, sizeof *bigger.slots);
    for (size_t i = 0; i < names->room; i++)
        if (names->slots[i].key != NULL)
            insert(&bigger, &names->slots[i]);
    free(names->slots);
    *names = bigger;
}

void names_put(struct names *names, const char *key, void *value)
{
    if (2 * (names->count + 1) > names->room)
        grow(names);
    insert(names, &(struct names_slot){key, value, hash_of_text(key)});
    names->count++;
}

void *names_remove(struct names *names, const char *key)
{
    struct names_slot *slot = names_find(names, key);
    if (slot == NULL)
        return NULL;
    void *value = slot->value;
    size_t hole = (size_t)(slot - names->slots), mask = names->room - 1;
    names->count--;
    /* Those that follow without a gap move into the hole, unless it is before their first choice.
     */
    for (size_t next = (hole + 1) & mask; names->slots[next].key != NULL;
         next = (next + 1) & mask) {
        size_t wanted = names->slots[next].hash & mask;
        if (((next - wanted) & mask) < ((next - hole) & mask))
            continue;
        names->slots[hole] = names->slots[next];
        hole = next;
    }
    names->slots[hole] = (struct names_slot){0};
    return value;
}
