/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All scopes of the rendezvous store, and the memory that they account for. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "model/plan/plan.h"
#include "rendezvous/request.h"
#include "rendezvous/scope.h"

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
