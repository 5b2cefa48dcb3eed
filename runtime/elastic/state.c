/* SPDX-License-Identifier: Apache-2.0 */
#include "elastic/state.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"

void elastic_state_init(struct elastic_state *state)
{
    *state = (struct elastic_state){.saved_age = -1};
}

void elastic_state_destroy(struct elastic_state *state)
{
    for (size_t i = 0; i < state->count; i++) {
        free(state->entries[i].name);
        free(state->entries[i].saved);
    }
    free(state->entries);
    elastic_state_init(state);
}

static int check_entry(const struct elastic_state *state, const char *name, const void *memory,
                       size_t bytes, struct error *err)
{
    size_t length = strnlen(name, ELASTIC_NAME_MAX + 1);
    if (length == 0 || length > ELASTIC_NAME_MAX)
        return error_set(err, "the name of an entry must have 1 to %d bytes", ELASTIC_NAME_MAX);
    if (memory == NULL && bytes > 0)
        return error_set(err, "the entry '%s' has no memory", name);
    if (state->saved_age >= 0)
        return error_set(err, "the entry '%s' must be added before the first commit or sync", name);
    for (size_t i = 0; i < state->count; i++) {
        if (strcmp(state->entries[i].name, name) == 0)
            return error_set(err, "the state has an entry '%s' already", name);
    }
    return 0;
}

int elastic_state_add(struct elastic_state *state, const char *name, void *memory, size_t bytes,
                      struct error *err)
{
    if (check_entry(state, name, memory, bytes, err) < 0)
        return -1;
    void *saved = calloc(bytes > 0 ? bytes : 1, 1); /* a program can have too much of it */
    if (saved == NULL)
        return error_set(err, "there is not enough memory to save '%s', %zu bytes", name, bytes);
    state->entries = mem_resize_array(state->entries, state->count + 1, sizeof(*state->entries));
    state->entries[state->count++] = (struct elastic_entry){
        .name = mem_strdup(name), .memory = memory, .saved = saved, .bytes = bytes};
    return 0;
}

void elastic_state_save(struct elastic_state *state)
{
    for (size_t i = 0; i < state->count; i++) {
        const struct elastic_entry *entry = &state->entries[i];
        if (entry->bytes > 0)
            memcpy(entry->saved, entry->memory, entry->bytes);
    }
    state->saved_age = state->age;
}

void elastic_state_commit(struct elastic_state *state)
{
    state->age++;
    elastic_state_save(state);
}

void elastic_state_restore(struct elastic_state *state)
{
    for (size_t i = 0; i < state->count && state->saved_age >= 0; i++) {
        const struct elastic_entry *entry = &state->entries[i];
        if (entry->bytes > 0)
            memcpy(entry->memory, entry->saved, entry->bytes);
    }
    if (state->saved_age >= 0)
        state->age = state->saved_age;
}

int64_t elastic_state_layout(const struct elastic_state *state)
{
    uint64_t hash = HASH_START;
    for (size_t i = 0; i < state->count; i++) {
        const struct elastic_entry *entry = &state->entries[i];
        uint64_t bytes = entry->bytes;
        hash = hash_add(hash, entry->name, strlen(entry->name) + 1);
        hash = hash_add(hash, &bytes, sizeof(bytes));
    }
    return (int64_t)(hash >> 2);
}
