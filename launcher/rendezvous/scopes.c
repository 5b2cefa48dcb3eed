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
    size_t length;
    bool done; /* a member said so by DELETE */
    char key[];
};

struct rendezvous_scope {
    struct map entries; /* by key */
    int64_t members;    /* 0: nobody knows them */
    int64_t done;       /* entries that are done */
    int *ranks;         /* by key, of the members */
    bool *left;         /* by key: done. In a scope of the plan NULL, its entries say so */
    bool complete;      /* all members were done, once */
    bool doomed;
    char name[];
};

static void entry_free(void *value)
{
    struct entry *entry = value;
    free(entry->blob);
    free(entry);
}

static void scope_free(void *value)
{
    struct rendezvous_scope *scope = value;
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

static size_t scope_cost(const char *name)
{
    return SCOPE_COST + strlen(name);
}

static size_t entry_cost(const char *key, size_t length)
{
    return KEY_COST + strlen(key) + length;
}

static void forget_entry(struct rendezvous_scopes *scopes, struct rendezvous_scope *scope,
                         struct entry *entry)
{
    scopes->memory -= entry_cost(entry->key, entry->length);
    scope->done -= entry->done ? 1 : 0;
    entry_free(entry);
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
    map_clear(&scopes->by_name, scope_free);
}

struct rendezvous_scope *rendezvous_scopes_find(const struct rendezvous_scopes *scopes,
                                                const char *name)
{
    return map_get(&scopes->by_name, map_text(name));
}

static struct rendezvous_scope *add_scope(struct rendezvous_scopes *scopes, const char *name)
{
    size_t size = strlen(name) + 1;
    struct rendezvous_scope *scope = mem_alloc(sizeof(*scope) + size);
    memcpy(scope->name, name, size);
    scopes->memory += scope_cost(name);
    map_put(&scopes->by_name, map_text(scope->name), scope);
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
    if (index >= scope->members) {
        scope->ranks = mem_resize_array(scope->ranks, (size_t)index + 1, sizeof(*scope->ranks));
        while (scope->members <= index)
            scope->ranks[scope->members++] = -1;
    }
    scope->ranks[index] = rank;
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

/* Copies the blob; it replaces an earlier one. */
static void put_entry(struct rendezvous_scopes *scopes, struct rendezvous_scope *scope,
                      const struct rendezvous_request *request)
{
    size_t key_size = strlen(request->key) + 1;
    struct entry *entry = mem_alloc(sizeof(*entry) + key_size);
    memcpy(entry->key, request->key, key_size);
    entry->length = request->length;
    if (request->length > 0)
        entry->blob = mem_dup(request->body, request->length);
    scopes->memory += entry_cost(entry->key, entry->length);
    struct entry *old = map_put(&scope->entries, map_text(entry->key), entry);
    if (old != NULL)
        forget_entry(scopes, scope, old);
}

bool rendezvous_scopes_put(struct rendezvous_scopes *scopes,
                           const struct rendezvous_request *request)
{
    struct rendezvous_scope *scope = rendezvous_scopes_find(scopes, request->scope);
    const struct entry *old = scope == NULL ? NULL : find_entry(scope, request->key);
    uint64_t more = entry_cost(request->key, request->length) +
                    (scope == NULL ? scope_cost(request->scope) : 0);
    uint64_t less = old == NULL ? 0 : entry_cost(old->key, old->length);
    if (scopes->memory - less + more > scopes->memory_limit)
        return false;
    put_entry(scopes, scope == NULL ? add_scope(scopes, request->scope) : scope, request);
    return true;
}

static bool is_planned(const struct rendezvous_scope *scope)
{
    return scope->members > 0 && scope->left == NULL;
}

/* In a scope of the plan: the key's member is done. The key stays readable until all members are,
 * which empties the scope. True: with it all members were done for the first time. */
static bool member_done(struct rendezvous_scopes *scopes, struct rendezvous_scope *scope,
                        const char *key)
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
        forget_entry(scopes, scope, entry);
    map_clear(&scope->entries, NULL);
    bool first = !scope->complete;
    scope->complete = true;
    return first;
}

/* In another scope, which ends with its last key. */
static void remove_key(struct rendezvous_scopes *scopes, struct rendezvous_scope *scope,
                       const char *key)
{
    struct entry *entry = map_remove(&scope->entries, map_text(key));
    if (entry == NULL)
        return;
    forget_entry(scopes, scope, entry);
    int64_t index = member_of(scope, key);
    if (index >= 0)
        scope->left[index] = true;
    if (scope->entries.count > 0)
        return;
    scopes->memory -= scope_cost(scope->name);
    map_remove(&scopes->by_name, map_text(scope->name));
    scope_free(scope);
}

bool rendezvous_scopes_delete(struct rendezvous_scopes *scopes,
                              const struct rendezvous_request *request)
{
    struct rendezvous_scope *scope = rendezvous_scopes_find(scopes, request->scope);
    if (scope == NULL)
        return false;
    if (is_planned(scope))
        return member_done(scopes, scope, request->key) && --scopes->incomplete == 0;
    remove_key(scopes, scope, request->key);
    return false;
}

bool rendezvous_scopes_find_members(const struct rendezvous_scopes *scopes,
                                    struct rendezvous_scope *scope,
                                    const struct rendezvous_request *request)
{
    const char *set = strstr(request->scope, "_process_set_hash_");
    if (scope->members > 0 || set == NULL)
        return false;
    AUTO_FREE char *name = mem_strndup(request->scope, (size_t)(set - request->scope));
    const struct rendezvous_scope *planned = rendezvous_scopes_find(scopes, name);
    if (planned == NULL || !is_planned(planned) ||
        request->length != RENDEZVOUS_PAIR_BYTES * (size_t)(planned->members - 1))
        return false;
    scope->members = planned->members;
    scope->ranks = mem_dup(planned->ranks, (size_t)planned->members * sizeof(*planned->ranks));
    scope->left = mem_array((size_t)planned->members, sizeof(*scope->left));
    return true;
}
