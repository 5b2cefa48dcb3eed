/* SPDX-License-Identifier: Apache-2.0 */
#include "rendezvous/scopes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* ---- One scope ------------------------------------------------------------------------------- */

/* What a key or a scope costs besides its bytes: keeps a flood of empty blobs within the limit. */
enum { KEY_COST = 160, SCOPE_COST = 400 };

struct entry {
    void *blob; /* NULL when length is 0 */
    size_t length, cost;
    bool done; /* a member said so by DELETE */
    char key[];
};

struct rendezvous_scope {
    struct map entries; /* by key */
    uint64_t memory;
    int64_t members; /* 0: nobody knows them */
    int64_t done;    /* entries that are done */
    int *ranks;      /* by key, of the members */
    bool *left;      /* by key: done. In a scope of the plan NULL, its entries say so */
    bool complete;   /* all members were done, once */
    bool doomed;
    char name[];
};

static void entry_free(void *value)
{
    struct entry *entry = value;
    free(entry->blob);
    free(entry);
}

static struct rendezvous_scope *rendezvous_scope_create(const char *name)
{
    size_t length = strlen(name);
    struct rendezvous_scope *scope = mem_alloc(sizeof(*scope) + length + 1);
    memcpy(scope->name, name, length);
    scope->memory = SCOPE_COST + length;
    return scope;
}

static const char *rendezvous_scope_name(const struct rendezvous_scope *scope)
{
    return scope->name;
}

static void rendezvous_scope_destroy(void *value)
{
    struct rendezvous_scope *scope = value;
    if (scope == NULL)
        return;
    map_clear(&scope->entries, entry_free);
    free(scope->ranks);
    free(scope->left);
    free(scope);
}

static struct entry *find_entry(const struct rendezvous_scope *scope, const char *key)
{
    return map_get(&scope->entries, map_text(key));
}

static struct entry *find_member(const struct rendezvous_scope *scope, int64_t index)
{
    char key[24];
    snprintf(key, sizeof(key), "%lld", (long long)index);
    return find_entry(scope, key);
}

/* The index of the member whose key this is; -1: it is another key. */
static int64_t member_of(const struct rendezvous_scope *scope, const char *key)
{
    int64_t index;
    return rendezvous_key_is_index(key, &index) && index < scope->members ? index : -1;
}

static size_t cost_of(const char *key, size_t length)
{
    return KEY_COST + strlen(key) + length;
}

/* The bytes that the scope accounts for, and the bytes that it would with a blob of this length
 * under the key. A scope of NULL is one that does not exist yet. */
static uint64_t rendezvous_scope_memory(const struct rendezvous_scope *scope)
{
    return scope->memory;
}

static uint64_t rendezvous_scope_memory_with(const struct rendezvous_scope *scope, const char *name,
                                             const char *key, size_t length)
{
    if (scope == NULL)
        return SCOPE_COST + strlen(name) + cost_of(key, length);
    const struct entry *old = find_entry(scope, key);
    return scope->memory - (old == NULL ? 0 : old->cost) + cost_of(key, length);
}

static void forget_entry(struct rendezvous_scope *scope, struct entry *entry)
{
    scope->memory -= entry->cost;
    scope->done -= entry->done ? 1 : 0;
    entry_free(entry);
}

/* Copies the blob; it replaces an earlier one. */
static void rendezvous_scope_put(struct rendezvous_scope *scope, const char *key, const void *blob,
                                 size_t length)
{
    size_t key_size = strlen(key) + 1;
    struct entry *entry = mem_alloc(sizeof(*entry) + key_size);
    memcpy(entry->key, key, key_size);
    entry->length = length;
    entry->cost = cost_of(key, length);
    if (length > 0)
        entry->blob = mem_dup(blob, length);
    scope->memory += entry->cost;
    struct entry *old = map_put(&scope->entries, map_text(entry->key), entry);
    if (old != NULL)
        forget_entry(scope, old);
}

bool rendezvous_scope_get(const struct rendezvous_scope *scope, const char *key, const void **blob,
                          size_t *length)
{
    const struct entry *entry = find_entry(scope, key);
    if (entry == NULL)
        return false;
    *blob = entry->blob;
    *length = entry->length;
    return true;
}

/* The key's member is done; the key stays readable until all members are, which empties the scope.
 * Only for a scope of the plan. True: with it all members were done for the first time. */
static bool rendezvous_scope_done(struct rendezvous_scope *scope, const char *key)
{
    struct entry *entry = find_entry(scope, key);
    if (entry == NULL || entry->done || member_of(scope, key) < 0)
        return false;
    entry->done = true;
    scope->done++;
    if (scope->done < scope->members)
        return false;
    size_t at = 0;
    for (entry = map_next(&scope->entries, &at); entry != NULL;
         entry = map_next(&scope->entries, &at))
        forget_entry(scope, entry);
    map_clear(&scope->entries, NULL);
    bool first = !scope->complete;
    scope->complete = true;
    return first;
}

/* Removes the key from another scope. True: with it the scope became empty. */
static bool rendezvous_scope_remove(struct rendezvous_scope *scope, const char *key)
{
    struct entry *entry = map_remove(&scope->entries, map_text(key));
    if (entry == NULL)
        return false;
    forget_entry(scope, entry);
    int64_t index = member_of(scope, key);
    if (index >= 0)
        scope->left[index] = true;
    return scope->entries.count == 0;
}

/* Key `index` of this scope of the plan is this rank. */
static void rendezvous_scope_add_member(struct rendezvous_scope *scope, int index, int rank)
{
    if (index >= scope->members) {
        scope->ranks = mem_resize_array(scope->ranks, (size_t)index + 1, sizeof(*scope->ranks));
        while (scope->members <= index)
            scope->ranks[scope->members++] = -1;
    }
    scope->ranks[index] = rank;
}

static bool rendezvous_scope_is_planned(const struct rendezvous_scope *scope)
{
    return scope->members > 0 && scope->left == NULL;
}

/* This scope of a process set has the members of that scope of the plan. */
static void rendezvous_scope_copy_members(struct rendezvous_scope *scope,
                                          const struct rendezvous_scope *planned)
{
    scope->members = planned->members;
    scope->ranks = mem_dup(planned->ranks, (size_t)planned->members * sizeof(*planned->ranks));
    scope->left = mem_array((size_t)planned->members, sizeof(*scope->left));
}

static int64_t rendezvous_scope_members(const struct rendezvous_scope *scope)
{
    return scope->members;
}

static bool is_done(const struct rendezvous_scope *scope, int64_t index)
{
    if (scope->left != NULL)
        return scope->left[index];
    const struct entry *entry = find_member(scope, index);
    return entry != NULL && entry->done;
}

static void doom(struct rendezvous_scope *scope, const struct rendezvous_stuck *stuck)
{
    scope->doomed = true;
    for (int64_t i = 0; i < scope->members; i++) {
        const struct entry *entry = find_member(scope, i);
        if (entry != NULL && !entry->done && scope->ranks[i] >= 0)
            stuck->rank(stuck->context, scope->ranks[i]);
    }
}

void rendezvous_scope_check(struct rendezvous_scope *scope, const struct rendezvous_stuck *stuck)
{
    for (int64_t i = 0; i < scope->members && !scope->complete && !scope->doomed; i++) {
        if (scope->ranks[i] >= 0 && stuck->gone[scope->ranks[i]] && !is_done(scope, i))
            doom(scope, stuck);
    }
}

int rendezvous_scope_stuck_rank(const struct rendezvous_scope *scope, const char *key)
{
    int64_t index = scope->doomed ? member_of(scope, key) : -1;
    return index < 0 ? -1 : scope->ranks[index];
}

/* ---- All scopes ------------------------------------------------------------------------------ */

static void set_limit(struct rendezvous_scopes *scopes, int64_t ranks)
{
    if (!scopes->fixed_limit)
        scopes->memory_limit = rendezvous_memory_need(ranks);
}

void rendezvous_scopes_init(struct rendezvous_scopes *scopes, uint64_t memory_limit)
{
    *scopes =
        (struct rendezvous_scopes){.memory_limit = memory_limit, .fixed_limit = memory_limit > 0};
    set_limit(scopes, 0);
}

void rendezvous_scopes_clear(struct rendezvous_scopes *scopes)
{
    map_clear(&scopes->by_name, rendezvous_scope_destroy);
}

struct rendezvous_scope *rendezvous_scopes_find(const struct rendezvous_scopes *scopes,
                                                const char *name)
{
    return map_get(&scopes->by_name, map_text(name));
}

static struct rendezvous_scope *add_scope(struct rendezvous_scopes *scopes, const char *name)
{
    struct rendezvous_scope *scope = rendezvous_scope_create(name);
    scopes->memory += rendezvous_scope_memory(scope);
    map_put(&scopes->by_name, map_text(rendezvous_scope_name(scope)), scope);
    return scope;
}

/* Key `index` of the scope is this rank of the plan. */
static void add_member(struct rendezvous_scopes *scopes, const char *name, int index, int rank)
{
    struct rendezvous_scope *scope = rendezvous_scopes_find(scopes, name);
    if (scope == NULL) {
        scope = add_scope(scopes, name);
        scopes->incomplete++;
    }
    rendezvous_scope_add_member(scope, index, rank);
}

void rendezvous_scopes_begin(struct rendezvous_scopes *scopes, const struct plan *plan)
{
    rendezvous_scopes_clear(scopes);
    scopes->memory = 0;
    scopes->incomplete = 0;
    set_limit(scopes, plan->size);
    for (int rank = 0; rank < plan->size; rank++) {
        const struct plan_rank *place = &plan->ranks[rank];
        AUTO_FREE char *local = mem_printf("local_%s", plan->nodes[place->node].name);
        AUTO_FREE char *cross = mem_printf("cross_%d", place->local_rank);
        add_member(scopes, "global", rank, rank);
        add_member(scopes, local, place->local_rank, rank);
        add_member(scopes, cross, place->cross_rank, rank);
    }
}

bool rendezvous_scopes_put(struct rendezvous_scopes *scopes,
                           const struct rendezvous_request *request)
{
    struct rendezvous_scope *scope = rendezvous_scopes_find(scopes, request->scope);
    uint64_t before = scope == NULL ? 0 : rendezvous_scope_memory(scope);
    uint64_t after =
        rendezvous_scope_memory_with(scope, request->scope, request->key, request->length);
    if (scopes->memory - before + after > scopes->memory_limit)
        return false;
    if (scope == NULL)
        scope = add_scope(scopes, request->scope);
    before = rendezvous_scope_memory(scope);
    rendezvous_scope_put(scope, request->key, request->body, request->length);
    scopes->memory += rendezvous_scope_memory(scope) - before;
    return true;
}

static void delete_elsewhere(struct rendezvous_scopes *scopes, struct rendezvous_scope *scope,
                             const struct rendezvous_request *request)
{
    if (!rendezvous_scope_remove(scope, request->key))
        return;
    map_remove(&scopes->by_name, map_text(request->scope));
    rendezvous_scope_destroy(scope);
}

bool rendezvous_scopes_delete(struct rendezvous_scopes *scopes,
                              const struct rendezvous_request *request)
{
    struct rendezvous_scope *scope = rendezvous_scopes_find(scopes, request->scope);
    bool met = false;
    if (scope == NULL)
        return false;
    scopes->memory -= rendezvous_scope_memory(scope);
    if (rendezvous_scope_is_planned(scope))
        met = rendezvous_scope_done(scope, request->key) && --scopes->incomplete == 0;
    else
        delete_elsewhere(scopes, scope, request);
    scope = rendezvous_scopes_find(scopes, request->scope);
    scopes->memory += scope == NULL ? 0 : rendezvous_scope_memory(scope);
    return met;
}

bool rendezvous_scopes_find_members(const struct rendezvous_scopes *scopes,
                                    struct rendezvous_scope *scope,
                                    const struct rendezvous_request *request)
{
    const char *set = strstr(request->scope, "_process_set_hash_");
    if (rendezvous_scope_members(scope) > 0 || set == NULL)
        return false;
    AUTO_FREE char *name = mem_strndup(request->scope, (size_t)(set - request->scope));
    const struct rendezvous_scope *planned = rendezvous_scopes_find(scopes, name);
    if (planned == NULL || !rendezvous_scope_is_planned(planned) ||
        request->length != RENDEZVOUS_PAIR_BYTES * (size_t)(rendezvous_scope_members(planned) - 1))
        return false;
    rendezvous_scope_copy_members(scope, planned);
    return true;
}
