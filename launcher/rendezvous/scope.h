/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One scope of the rendezvous store: keys with opaque blobs, and its members as far as they are
 * known. A member's key is its index in the scope. Pure.
 *
 * A scope of the plan has members from the start; the store knows which of them have ended. Such a
 * scope is *doomed* when a member that was not done has ended. Nobody can complete it any more, and
 * members whose address is in it wait in vain.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rendezvous_scope;

/* The members that wait in vain. `gone` says of each rank whether it has ended. */
struct rendezvous_stuck {
    const bool *gone;
    void (*rank)(void *context, int rank);
    void *context;
};

struct rendezvous_scope *rendezvous_scope_create(const char *name);
void rendezvous_scope_destroy(void *scope);
const char *rendezvous_scope_name(const struct rendezvous_scope *scope);

/* The bytes that the scope accounts for, and the bytes that it would with a blob of this length
 * under the key. A scope of NULL is one that does not exist yet. */
uint64_t rendezvous_scope_memory(const struct rendezvous_scope *scope);
uint64_t rendezvous_scope_memory_with(const struct rendezvous_scope *scope, const char *name,
                                      const char *key, size_t length);

/* Copies the blob; it replaces an earlier one. */
void rendezvous_scope_put(struct rendezvous_scope *scope, const char *key, const void *blob,
                          size_t length);
/* False: there is no such key. The blob belongs to the scope; NULL if its length is 0. */
bool rendezvous_scope_get(const struct rendezvous_scope *scope, const char *key, const void **blob,
                          size_t *length);

/* The key's member is done; the key stays readable until all members are, which empties the scope.
 * Only for a scope of the plan. True: with it all members were done for the first time. */
bool rendezvous_scope_done(struct rendezvous_scope *scope, const char *key);
/* Removes the key from another scope. True: with it the scope became empty. */
bool rendezvous_scope_remove(struct rendezvous_scope *scope, const char *key);

/* Key `index` of this scope of the plan is this rank. */
void rendezvous_scope_add_member(struct rendezvous_scope *scope, int index, int rank);
bool rendezvous_scope_is_planned(const struct rendezvous_scope *scope);
/* This scope of a process set has the members of that scope of the plan. */
void rendezvous_scope_copy_members(struct rendezvous_scope *scope,
                                   const struct rendezvous_scope *planned);
int64_t rendezvous_scope_members(const struct rendezvous_scope *scope); /* 0: nobody knows them */

/* After a rank has ended: reports those that wait in vain, once, if that dooms the scope. */
void rendezvous_scope_check(struct rendezvous_scope *scope, const struct rendezvous_stuck *stuck);
/* The rank whose address this key is, in a scope that is doomed; else -1. */
int rendezvous_scope_stuck_rank(const struct rendezvous_scope *scope, const char *key);
