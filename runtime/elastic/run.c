/* SPDX-License-Identifier: Apache-2.0 */
#include "elastic/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"

/* ---- The state ------------------------------------------------------------------------------- */

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
    MEM_ADD(state->entries, state->count) = (struct elastic_entry){
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

/* ---- The collective operations on a state ---------------------------------------------------- */

/* Age and rank in one number: the greatest is that of the lowest rank with the greatest age. */
#define RANKS_MAX (1 << 24)

static int choose_root(const struct elastic_state *state, const struct elastic_world *world,
                       int *root, struct error *err)
{
    int64_t own = RANKS_MAX - 1 - world->rank(world->context);
    int64_t best = state->age * RANKS_MAX + own;
    int status = world->max(world->context, "hvd.elastic.age", &best, err);
    *root = RANKS_MAX - 1 - (int)(best % RANKS_MAX);
    return status;
}

/* The layouts are equal if their greatest and their least value are. */
static int compare_layouts(const struct elastic_state *state, const struct elastic_world *world,
                           struct error *err)
{
    int64_t greatest = elastic_state_layout(state), least = -greatest;
    int status = world->max(world->context, "hvd.elastic.layout", &greatest, err);
    if (status == HVD_OK)
        status = world->max(world->context, "hvd.elastic.layout.least", &least, err);
    if (status != HVD_OK || greatest == -least)
        return status;
    error_set(err, "the ranks have added entries of different names or sizes to the state: add the "
                   "same on all ranks, in the same order");
    return HVD_ERR_MISMATCH;
}

int elastic_sync(struct elastic_state *state, const struct elastic_world *world, struct error *err)
{
    int root = 0;
    int64_t age = state->age;
    int status = compare_layouts(state, world, err);
    if (status == HVD_OK)
        status = choose_root(state, world, &root, err);
    if (status == HVD_OK)
        status =
            world->broadcast(world->context, "hvd.elastic.age.root", &age, sizeof(age), root, err);
    for (size_t i = 0; i < state->count && status == HVD_OK; i++) {
        const struct elastic_entry *entry = &state->entries[i];
        char name[ELASTIC_NAME_MAX + 32];
        snprintf(name, sizeof(name), "hvd.elastic.state.%s", entry->name);
        status = world->broadcast(world->context, name, entry->memory, entry->bytes, root, err);
    }
    if (status != HVD_OK)
        return status;
    state->age = age > 0 ? age : 1; /* from now on it is shared */
    elastic_state_save(state);
    return HVD_OK;
}

int elastic_check(const struct elastic_world *world, struct error *err)
{
    bool changed = world->hosts_changed(world->context);
    uint8_t news = changed && world->rank(world->context) == 0;
    int status = world->broadcast(world->context, "hvd.elastic.hosts", &news, sizeof(news), 0, err);
    if (status != HVD_OK || news == 0)
        return status;
    error_set(err, "hosts have joined or left the job");
    return HVD_ERR_HOSTS_CHANGED;
}

/* ---- The run --------------------------------------------------------------------------------- */

enum outcome { OVER, HOSTS_CHANGED, LOST };

static enum outcome outcome_of(int status)
{
    switch (status) {
    case HVD_ERR_HOSTS_CHANGED: return HOSTS_CHANGED;
    case HVD_ERR_PEER_LOST:
    case HVD_ERR_SHUT_DOWN:
    case HVD_ERR_TIMEOUT:
    case HVD_ERR_ENGINE: return LOST;
    default: return OVER;
    }
}

/* What sync leaves behind when it fails may be a mixture of two states. */
static enum outcome attempt(struct elastic_state *state, const struct elastic_world *world,
                            int (*function)(void *context), void *context, int *status,
                            struct error *err)
{
    *status = elastic_sync(state, world, err);
    if (*status == HVD_OK)
        *status = function(context);
    return outcome_of(*status);
}

/* Each try waits until the launcher has ranks for the next epoch, or ends this one. */
static int next_epoch(const struct elastic_world *world, struct error *err)
{
    int status;
    do {
        world->close(world->context);
        status = world->open(world->context, err);
    } while (outcome_of(status) == LOST && status != HVD_ERR_ENGINE);
    return status;
}

int elastic_run(struct elastic_state *state, const struct elastic_world *world, bool rejoins,
                int (*function)(void *context), void *context, struct error *err)
{
    for (;;) {
        int status = HVD_OK;
        enum outcome outcome = attempt(state, world, function, context, &status, err);
        if (outcome == OVER || !rejoins)
            return status;
        if (outcome == LOST)
            elastic_state_restore(state);
        status = next_epoch(world, err);
        if (status != HVD_OK)
            return status;
    }
}
