/* SPDX-License-Identifier: Apache-2.0 */
/* The scopes of the rendezvous store, and the memory that they account for. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "model/plan/plan.h"
#include "rendezvous/http.h"

/*
 * One scope of the rendezvous store: keys with opaque blobs, and its members as far as they are
 * known. A member's key is its index in the scope.
 *
 * A scope of the plan has members from the start; the store knows which of them have ended. Such a
 * scope is *doomed* when a member that was not done has ended. Nobody can complete it any more, and
 * members whose address is in it wait in vain.
 */
struct rendezvous_scope;

/* The members that wait in vain. `gone` says of each rank whether it has ended. */
struct rendezvous_stuck {
    const bool *gone;
    void (*rank)(void *context, int rank);
    void *context;
};

/* False: there is no such key. The blob belongs to the scope; NULL if its length is 0. */
bool rendezvous_scope_get(const struct rendezvous_scope *scope, const char *key, const void **blob,
                          size_t *length);

/* After a rank has ended: reports those that wait in vain, once, if that dooms the scope. */
void rendezvous_scope_check(struct rendezvous_scope *scope, const struct rendezvous_stuck *stuck);

/* The rank whose address this key is, in a scope that is doomed; else -1. */
int rendezvous_scope_stuck_rank(const struct rendezvous_scope *scope, const char *key);

/* All scopes. */
struct rendezvous_scopes {
    struct map by_name;
    uint64_t memory, memory_limit;
    bool fixed_limit;
    int incomplete; /* scopes of the plan */
};

/* A memory limit of 0: what the ranks of each plan can need. */
void rendezvous_scopes_init(struct rendezvous_scopes *scopes, uint64_t memory_limit);
void rendezvous_scopes_clear(struct rendezvous_scopes *scopes);

/* Removes all scopes, and adds those of the plan, which are empty. */
void rendezvous_scopes_begin(struct rendezvous_scopes *scopes, const struct plan *plan);

/* NULL: there is no such scope. */
struct rendezvous_scope *rendezvous_scopes_find(const struct rendezvous_scopes *scopes,
                                                const char *name);

/* Stores the body of a PUT, in a new scope if need be. False: there is no room for it. */
bool rendezvous_scopes_put(struct rendezvous_scopes *scopes,
                           const struct rendezvous_request *request);

/* A DELETE. True: with it, all ranks are done in all scopes of the plan. */
bool rendezvous_scopes_delete(struct rendezvous_scopes *scopes,
                              const struct rendezvous_request *request);

/* After a PUT of an address into this scope. A process set has scopes of its own, with the names of
 * the plan's in front. If it has all ranks, its members are the plan's. The addresses show how many
 * they are: one for each other member. True: now the members of the scope are known. */
bool rendezvous_scopes_find_members(const struct rendezvous_scopes *scopes,
                                    struct rendezvous_scope *scope,
                                    const struct rendezvous_request *request);
