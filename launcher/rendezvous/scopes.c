/* SPDX-License-Identifier: Apache-2.0 */
#include "rendezvous/scopes.h"

#include <string.h>

#include "base/mem.h"

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
