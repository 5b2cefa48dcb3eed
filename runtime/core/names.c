/* SPDX-License-Identifier: Apache-2.0 */
#include "core/names.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { ROOM_MIN = 64 };

void names_destroy(struct names *names)
{
    free(names->slots);
    *names = (struct names){0};
}

/* FNV-1a. */
static size_t hash(const char *key)
{
    uint64_t value = 0xcbf29ce484222325u;
    for (; *key != '\0'; key++)
        value = (value ^ (unsigned char)*key) * 0x100000001b3u;
    return (size_t)(value ^ value >> 32);
}

/* Where the key is, or would be. */
static size_t place(const struct names *names, const char *key)
{
    size_t at = hash(key) & (names->room - 1);
    while (names->slots[at].key != NULL && strcmp(names->slots[at].key, key) != 0)
        at = (at + 1) & (names->room - 1);
    return at;
}

void *names_get(const struct names *names, const char *key)
{
    return names->count == 0 ? NULL : names->slots[place(names, key)].value;
}

static void insert(struct names *names, const char *key, void *value)
{
    names->slots[place(names, key)] = (struct names_slot){key, value};
}

static void grow(struct names *names)
{
    struct names bigger = {.room = names->room == 0 ? ROOM_MIN : 2 * names->room,
                           .count = names->count};
    bigger.slots = mem_array(bigger.room, sizeof *bigger.slots);
    for (size_t i = 0; i < names->room; i++)
        if (names->slots[i].key != NULL)
            insert(&bigger, names->slots[i].key, names->slots[i].value);
    free(names->slots);
    *names = bigger;
}

void names_put(struct names *names, const char *key, void *value)
{
    if (2 * (names->count + 1) > names->room)
        grow(names);
    insert(names, key, value);
    names->count++;
}

void *names_remove(struct names *names, const char *key)
{
    if (names->count == 0)
        return NULL;
    size_t at = place(names, key);
    void *value = names->slots[at].value;
    if (names->slots[at].key == NULL)
        return NULL;
    names->slots[at] = (struct names_slot){0};
    names->count--;
    /* Those that follow without a gap may have been moved on by the one that went. */
    for (size_t next = (at + 1) & (names->room - 1); names->slots[next].key != NULL;
         next = (next + 1) & (names->room - 1)) {
        struct names_slot moved = names->slots[next];
        names->slots[next] = (struct names_slot){0};
        insert(names, moved.key, moved.value);
    }
    return value;
}
