/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks/objects.h"

#include <string.h>

#include "base/mem.h"

#define TYPE_NAME_MAX 64
#define KEY_MAX 64
#define ENTRIES_MAX 4096 /* of a dict or a set */
#define WEAK_SET_MEMBERS 6

#define DICT_KEYS 32
#define DICT_VALUES 40
#define MODULE_DICT 16
#define SET_MASK 32
#define SET_TABLE 40
#define WEAKREF_OBJECT 16
#define HEAD 16 /* of each object: count of references, type */

bool object_is(struct memory *memory, const struct python_layout *layout, uint64_t object,
               const char *type)
{
    uint64_t at = 0, name_at = 0;
    char name[TYPE_NAME_MAX];
    size_t length = strlen(type) + 1;
    return memory_is_pointer(object) && length <= sizeof(name) &&
           memory_pointer(memory, object + layout->object_type, &at) == 0 && at != 0 &&
           memory_u64(memory, at + layout->type_name, &name_at) == 0 &&
           memory_read(memory, name_at, name, length) == 0 && memcmp(name, type, length) == 0;
}

static bool is_key(struct memory *memory, const struct python_layout *layout, uint64_t object,
                   const char *key)
{
    uint64_t length = 0;
    char text[KEY_MAX];
    size_t wanted = strlen(key);
    return memory_is_pointer(object) && wanted < sizeof(text) &&
           memory_u64(memory, object + layout->str_length, &length) == 0 && length == wanted &&
           memory_read(memory, object + layout->str_ascii, text, wanted) == 0 &&
           memcmp(text, key, wanted) == 0 && object_is(memory, layout, object, "str");
}

struct entries {
    uint64_t at; /* of the first */
    uint64_t count;
    size_t size, key, value; /* bytes of an entry; offsets in it */
};

/* Before 3.11: the size of the table of indices follows from that of the dict. */
static int old_entries(struct memory *memory, uint64_t keys, struct entries *out)
{
    uint64_t size = 0;
    if (memory_u64(memory, keys + 8, &size) < 0 || memory_u64(memory, keys + 32, &out->count) < 0)
        return -1;
    uint64_t width = size <= 0xff ? 1 : size <= 0xffff ? 2 : 4;
    out->at = keys + 40 + size * width;
    out->size = 24;
    return 0;
}

static int new_entries(struct memory *memory, uint64_t keys, struct entries *out)
{
    unsigned char head[32];
    if (memory_read(memory, keys, head, sizeof(head)) < 0 || head[9] > 24 || head[10] > 1)
        return -1;
    out->count = memory_u64_at(head + 24);
    out->at = keys + 32 + ((uint64_t)1 << head[9]);
    out->size = head[10] == 0 ? 24 : 16; /* all keys are text: it keeps no hashes */
    return 0;
}

static int read_entries(struct memory *memory, const struct python_layout *layout, uint64_t dict,
                        struct entries *out)
{
    uint64_t keys = 0, values = 0;
    *out = (struct entries){.at = 0};
    if (memory_pointer(memory, dict + DICT_KEYS, &keys) < 0 || keys == 0 ||
        memory_pointer(memory, dict + DICT_VALUES, &values) < 0 || values != 0)
        return -1;
    int result =
        layout->minor < 11 ? old_entries(memory, keys, out) : new_entries(memory, keys, out);
    out->key = out->size - 16;
    out->value = out->size - 8;
    return result == 0 && out->count <= ENTRIES_MAX ? 0 : -1;
}

uint64_t object_dict_get(struct memory *memory, const struct python_layout *layout, uint64_t dict,
                         const char *key)
{
    struct entries entries;
    if (!object_is(memory, layout, dict, "dict") ||
        read_entries(memory, layout, dict, &entries) < 0 || entries.count == 0)
        return 0;
    size_t size = (size_t)entries.count * entries.size;
    unsigned char *bytes AUTO_FREE = mem_alloc(size);
    if (memory_read(memory, entries.at, bytes, size) < 0)
        return 0;
    for (uint64_t i = 0; i < entries.count; i++) {
        const unsigned char *entry = bytes + i * entries.size;
        uint64_t value = memory_u64_at(entry + entries.value);
        if (value != 0 && is_key(memory, layout, memory_u64_at(entry + entries.key), key))
            return value;
    }
    return 0;
}

uint64_t object_module_dict(struct memory *memory, const struct python_layout *layout,
                            uint64_t module)
{
    uint64_t dict = 0;
    if (!object_is(memory, layout, module, "module") ||
        memory_pointer(memory, module + MODULE_DICT, &dict) < 0)
        return 0;
    return dict;
}

/* Where the values of an object's attributes are, in the order in which they were set; 0: nowhere.
 */
static uint64_t attribute_values(struct memory *memory, const struct python_layout *layout,
                                 uint64_t object)
{
    uint64_t at = 0;
    if (layout->minor < 11) { /* a dict that shares its keys, in the first word of the object */
        bool is_dict = memory_pointer(memory, object + HEAD, &at) == 0 && at != 0 &&
                       object_is(memory, layout, at, "dict") &&
                       memory_pointer(memory, at + DICT_VALUES, &at) == 0;
        return is_dict ? at : 0;
    }
    if (layout->minor == 11)
        return memory_pointer(memory, object - 32, &at) == 0 ? at : 0;
    if (layout->minor == 12) /* marked by its lowest bit, which is that of the byte before */
        return memory_u64(memory, object - 24, &at) == 0 && (at & 1) != 0 ? at + 1 : 0;
    return object + HEAD + 8; /* in the object itself, behind 8 bytes about them */
}

uint64_t object_weak_set(struct memory *memory, const struct python_layout *layout, uint64_t object)
{
    if (!object_is(memory, layout, object, "WeakSet"))
        return 0;
    uint64_t values = attribute_values(memory, layout, object), one = 0;
    for (uint64_t i = 0; values != 0 && i < WEAK_SET_MEMBERS; i++) {
        if (memory_u64(memory, values + 8 * i, &one) == 0 && object_is(memory, layout, one, "set"))
            return one;
    }
    return 0;
}

void object_set_walk(struct memory *memory, uint64_t set, size_t max,
                     void (*each)(void *context, uint64_t object), void *context)
{
    uint64_t mask = 0, table = 0, key = 0, object = 0;
    if (memory_u64(memory, set + SET_MASK, &mask) < 0 || mask >= ENTRIES_MAX * 16 ||
        memory_pointer(memory, set + SET_TABLE, &table) < 0 || table == 0)
        return;
    for (uint64_t i = 0; i <= mask && max > 0; i++) {
        if (memory_u64(memory, table + 16 * i, &key) < 0 || !memory_is_pointer(key) ||
            memory_u64(memory, key + WEAKREF_OBJECT, &object) < 0 || !memory_is_pointer(object))
            continue;
        each(context, object);
        max--;
    }
}
