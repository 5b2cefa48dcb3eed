/* SPDX-License-Identifier: Apache-2.0 */
#include "rendezvous/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "rendezvous/http.h"
#include "rendezvous/table.h"

/* What a key or a scope costs besides its bytes: keeps a flood of empty blobs within the limit. */
enum { KEY_COST = 160, SCOPE_COST = 400 };

enum { HELD_LEAST = 1024 };

struct entry {
    void *blob; /* NULL when length is 0 */
    size_t length, cost;
    bool done; /* a member said so by DELETE */
};

struct scope {
    struct rendezvous_table *entries;
    size_t cost;
    int64_t members; /* 0: not one of the plan's */
    int64_t done;    /* entries that are done */
};

struct rendezvous_store {
    const struct rendezvous_store_ops *ops;
    void *context;
    struct rendezvous_table *scopes;
    struct rendezvous_held *held;
    uint64_t memory, memory_limit;
    size_t held_limit; /* as many as there can be workers that wait, those of an epoch before too */
    bool fixed_limit;
    uint32_t epoch;
    bool full_said;
};

static void entry_free(void *value)
{
    struct entry *entry = value;
    free(entry->blob);
    free(entry);
}

static void scope_free(void *value)
{
    struct scope *scope = value;
    rendezvous_table_destroy(scope->entries, entry_free);
    free(scope);
}

static void set_limits(struct rendezvous_store *store, int64_t ranks)
{
    if (!store->fixed_limit)
        store->memory_limit = rendezvous_memory_need(ranks);
    store->held_limit = HELD_LEAST + 2 * (size_t)ranks;
}

struct rendezvous_store *rendezvous_store_create(const struct rendezvous_store_ops *ops,
                                                 void *context, uint64_t memory_limit)
{
    struct rendezvous_store *store = mem_alloc(sizeof(*store));
    store->ops = ops;
    store->context = context;
    store->memory_limit = memory_limit;
    store->fixed_limit = memory_limit > 0;
    set_limits(store, 0);
    store->scopes = rendezvous_table_create();
    store->held = rendezvous_held_create();
    return store;
}

void rendezvous_store_destroy(struct rendezvous_store *store)
{
    if (store == NULL)
        return;
    rendezvous_table_destroy(store->scopes, scope_free);
    rendezvous_held_destroy(store->held);
    free(store);
}

uint64_t rendezvous_store_memory(const struct rendezvous_store *store)
{
    return store->memory;
}

static struct scope *find_scope(const struct rendezvous_store *store, const char *name)
{
    return rendezvous_table_get(store->scopes, name, strlen(name));
}

static struct scope *add_scope(struct rendezvous_store *store, const char *name)
{
    struct scope *scope = mem_alloc(sizeof(*scope));
    scope->entries = rendezvous_table_create();
    scope->cost = SCOPE_COST + strlen(name);
    store->memory += scope->cost;
    rendezvous_table_put(store->scopes, name, strlen(name), scope);
    return scope;
}

static void add_members(struct rendezvous_store *store, const char *name, int64_t members)
{
    struct scope *scope = find_scope(store, name);
    if (scope == NULL)
        scope = add_scope(store, name);
    scope->members += members;
}

static void reply(struct rendezvous_store *store, struct rendezvous_source source, int status)
{
    store->ops->reply(store->context, source, status, NULL, 0);
}

void rendezvous_store_begin(struct rendezvous_store *store, uint32_t epoch, const struct plan *plan)
{
    struct rendezvous_source source;
    while (rendezvous_held_take_due(store->held, INT64_MAX, &source))
        reply(store, source, HTTP_NOT_FOUND);
    rendezvous_table_destroy(store->scopes, scope_free);
    store->scopes = rendezvous_table_create();
    store->memory = 0;
    store->epoch = epoch;
    store->full_said = false;
    set_limits(store, plan->size);

    add_members(store, "global", plan->size);
    for (int i = 0; i < plan->node_count; i++) {
        AUTO_FREE char *name = mem_printf("local_%s", plan->nodes[i].name);
        add_members(store, name, plan->nodes[i].local_size);
    }
    for (int i = 0; i < plan->size; i++) {
        char name[32];
        snprintf(name, sizeof(name), "cross_%d", plan->ranks[i].local_rank);
        add_members(store, name, 1);
    }
}

/* Takes one entry's account off; the entry itself is freed by the caller. */
static void forget_entry(struct rendezvous_store *store, struct scope *scope, struct entry *entry)
{
    store->memory -= entry->cost;
    scope->done -= entry->done ? 1 : 0;
    entry_free(entry);
}

static void empty_scope(struct rendezvous_store *store, struct scope *scope)
{
    for (void *entry = rendezvous_table_pop(scope->entries); entry != NULL;
         entry = rendezvous_table_pop(scope->entries))
        forget_entry(store, scope, entry);
}

static void say_full(struct rendezvous_store *store)
{
    if (store->full_said)
        return;
    store->full_said = true;
    AUTO_FREE char *text = mem_printf(
        "the rendezvous store is full (%llu MiB, more than the ranks of this job can need): most "
        "likely another program fills it, and workers that meet through Gloo may abort",
        (unsigned long long)(store->memory_limit >> 20));
    store->ops->problem(store->context, text);
}

static void do_put(struct rendezvous_store *store, struct rendezvous_source source,
                   const struct rendezvous_request *request)
{
    struct scope *scope = find_scope(store, request->scope);
    size_t key_length = strlen(request->key);
    struct entry *old =
        scope == NULL ? NULL : rendezvous_table_get(scope->entries, request->key, key_length);
    uint64_t after = store->memory - (old == NULL ? 0 : old->cost) + KEY_COST + key_length +
                     request->length + (scope == NULL ? SCOPE_COST + strlen(request->scope) : 0);
    if (after > store->memory_limit) {
        say_full(store);
        reply(store, source, HTTP_FULL);
        return;
    }
    if (scope == NULL)
        scope = add_scope(store, request->scope);
    struct entry *entry = mem_alloc(sizeof(*entry));
    entry->length = request->length;
    entry->cost = KEY_COST + key_length + request->length;
    if (request->length > 0)
        entry->blob = mem_dup(request->body, request->length);
    store->memory += entry->cost;
    old = rendezvous_table_put(scope->entries, request->key, key_length, entry);
    if (old != NULL)
        forget_entry(store, scope, old);
    reply(store, source, HTTP_OK);

    struct rendezvous_source waiter;
    while (rendezvous_held_take(store->held, request->scope, request->key, &waiter))
        store->ops->reply(store->context, waiter, HTTP_OK, entry->blob, entry->length);
}

static void do_get(struct rendezvous_store *store, int64_t now_ms, struct rendezvous_source source,
                   const struct rendezvous_request *request)
{
    struct scope *scope = find_scope(store, request->scope);
    struct entry *entry =
        scope == NULL ? NULL
                      : rendezvous_table_get(scope->entries, request->key, strlen(request->key));
    int64_t index;
    if (entry != NULL)
        store->ops->reply(store->context, source, HTTP_OK, entry->blob, entry->length);
    else if (rendezvous_key_is_index(request->key, &index) &&
             rendezvous_held_count(store->held) < store->held_limit)
        rendezvous_held_add(store->held, request->scope, request->key, source,
                            now_ms + RENDEZVOUS_HOLD_MS);
    else
        reply(store, source, HTTP_NOT_FOUND);
}

static void delete_in_plan(struct rendezvous_store *store, struct scope *scope, const char *key)
{
    struct entry *entry = rendezvous_table_get(scope->entries, key, strlen(key));
    int64_t index;
    if (entry == NULL || entry->done || !rendezvous_key_is_index(key, &index) ||
        index >= scope->members)
        return;
    entry->done = true;
    scope->done++;
    if (scope->done == scope->members)
        empty_scope(store, scope);
}

static void delete_elsewhere(struct rendezvous_store *store, struct scope *scope,
                             const struct rendezvous_request *request)
{
    struct entry *entry =
        rendezvous_table_remove(scope->entries, request->key, strlen(request->key));
    if (entry == NULL)
        return;
    forget_entry(store, scope, entry);
    if (rendezvous_table_count(scope->entries) > 0)
        return;
    rendezvous_table_remove(store->scopes, request->scope, strlen(request->scope));
    store->memory -= scope->cost;
    scope_free(scope);
}

static void do_delete(struct rendezvous_store *store, struct rendezvous_source source,
                      const struct rendezvous_request *request)
{
    struct scope *scope = find_scope(store, request->scope);
    if (scope != NULL && scope->members > 0)
        delete_in_plan(store, scope, request->key);
    else if (scope != NULL)
        delete_elsewhere(store, scope, request);
    reply(store, source, HTTP_OK);
}

void rendezvous_store_request(struct rendezvous_store *store, int64_t now_ms, uint32_t epoch,
                              struct rendezvous_source source,
                              const struct rendezvous_request *request)
{
    if (!rendezvous_request_is_valid(request)) {
        reply(store, source, HTTP_BAD_REQUEST);
        return;
    }
    if (rendezvous_scope_is_elastic(request->scope)) {
        if (store->ops->elastic != NULL) {
            store->ops->elastic(store->context, source, request);
            return;
        }
        if (strcmp(request->scope, "rank_and_size") == 0) {
            reply(store, source, HTTP_NOT_IMPLEMENTED);
            return;
        }
    }
    if (epoch != store->epoch) {
        reply(store, source, HTTP_NOT_FOUND);
        return;
    }
    switch (request->method) {
    case RENDEZVOUS_GET: do_get(store, now_ms, source, request); break;
    case RENDEZVOUS_PUT: do_put(store, source, request); break;
    case RENDEZVOUS_DELETE: do_delete(store, source, request); break;
    }
}

void rendezvous_store_drop(struct rendezvous_store *store, struct rendezvous_source source)
{
    if (!rendezvous_held_drop(store->held, source) && store->ops->elastic_dropped != NULL)
        store->ops->elastic_dropped(store->context, source);
}

void rendezvous_store_drop_node(struct rendezvous_store *store, uint32_t node)
{
    rendezvous_held_drop_node(store->held, node);
}

int64_t rendezvous_store_next_deadline(const struct rendezvous_store *store)
{
    return rendezvous_held_deadline(store->held);
}

void rendezvous_store_expire(struct rendezvous_store *store, int64_t now_ms)
{
    struct rendezvous_source source;
    while (rendezvous_held_take_due(store->held, now_ms, &source))
        reply(store, source, HTTP_NOT_FOUND);
}
