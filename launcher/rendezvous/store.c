/* SPDX-License-Identifier: Apache-2.0 */
#include "rendezvous/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "rendezvous/http.h"
#include "rendezvous/scopes.h"

enum { HELD_LEAST = 1024 };

enum { GATE_NOTICE_MS = 60 * 1000 }; /* after which the user learns which ranks are missing */

struct rendezvous_store {
    const struct rendezvous_store_ops *ops;
    void *context;
    struct rendezvous_scopes scopes;
    struct rendezvous_held held;
    size_t held_limit; /* as many as there can be workers that wait, those of an epoch before too */
    uint32_t epoch;
    bool full_said, late_said;
    struct rendezvous_gate gate;
    bool gate_opened;     /* in this epoch */
    bool gate_broken;     /* a rank has ended: not all can come any more */
    int64_t gate_said_ms; /* when the user learns which ranks are missing */
    int size;
    bool *gone; /* by rank */
};

struct rendezvous_store *rendezvous_store_create(const struct rendezvous_store_ops *ops,
                                                 void *context, uint64_t memory_limit)
{
    struct rendezvous_store *store = mem_alloc(sizeof(*store));
    store->ops = ops;
    store->context = context;
    store->held_limit = HELD_LEAST;
    rendezvous_scopes_init(&store->scopes, memory_limit);
    rendezvous_held_init(&store->held);
    return store;
}

void rendezvous_store_destroy(struct rendezvous_store *store)
{
    if (store == NULL)
        return;
    rendezvous_scopes_clear(&store->scopes);
    rendezvous_held_clear(&store->held);
    rendezvous_gate_reset(&store->gate, 0);
    free(store->gone);
    free(store);
}

uint64_t rendezvous_store_memory(const struct rendezvous_store *store)
{
    return store->scopes.memory;
}

static void reply(struct rendezvous_store *store, struct rendezvous_source source, int status)
{
    store->ops->reply(store->context, source, status, NULL, 0);
}

static void open_gate(struct rendezvous_store *store, int status)
{
    struct rendezvous_source source;
    store->gate_opened = true;
    for (int rank = 0; rank < store->size; rank++) {
        if (rendezvous_gate_leave(&store->gate, rank, &source))
            reply(store, source, status);
    }
}

void rendezvous_store_begin(struct rendezvous_store *store, uint32_t epoch, const struct plan *plan)
{
    struct rendezvous_source source;
    while (rendezvous_held_take_due(&store->held, INT64_MAX, &source))
        reply(store, source, HTTP_NOT_FOUND);
    open_gate(store, HTTP_NOT_FOUND);
    rendezvous_scopes_begin(&store->scopes, plan);
    store->epoch = epoch;
    store->full_said = store->late_said = false;
    store->held_limit = HELD_LEAST + 2 * (size_t)plan->size;
    rendezvous_gate_reset(&store->gate, plan->size);
    store->gate_opened = store->gate_broken = false;
    store->size = plan->size;
    free(store->gone);
    store->gone = mem_array((size_t)plan->size + 1, sizeof(*store->gone));
}

static void say_full(struct rendezvous_store *store)
{
    if (store->full_said)
        return;
    store->full_said = true;
    AUTO_FREE char *text = mem_printf(
        "the rendezvous store is full (%llu MiB, more than the ranks of this job can need): most "
        "likely another program fills it, and workers that meet through Gloo may abort",
        (unsigned long long)(store->scopes.memory_limit >> 20));
    store->ops->problem(store->context, text);
}

static void tell_stuck(struct rendezvous_store *store, int rank, bool at_gate)
{
    if (store->ops->stuck != NULL && !store->gone[rank])
        store->ops->stuck(store->context, rank, at_gate);
}

/* The rank of a PUT for which the gate waits; -1: it is another request. */
static int comes_to_gate(const struct rendezvous_store *store,
                         const struct rendezvous_request *request)
{
    static const char prefix[] = "rank_";
    int64_t rank;
    if (strcmp(request->scope, "global") != 0 ||
        strncmp(request->key, prefix, sizeof(prefix) - 1) != 0 ||
        !rendezvous_key_is_index(request->key + sizeof(prefix) - 1, &rank) || rank >= store->size)
        return -1;
    return (int)rank;
}

/* Answers the PUT of this rank, or holds it until all ranks have come. */
static void hold_at_gate(struct rendezvous_store *store, int64_t now_ms, int rank,
                         struct rendezvous_source source)
{
    struct rendezvous_source earlier;
    if (rendezvous_gate_leave(&store->gate, rank, &earlier))
        reply(store, earlier, HTTP_OK); /* mostly nobody is there to hear it */
    if (store->gate.held == 0)
        store->gate_said_ms = now_ms + GATE_NOTICE_MS;
    bool all = rendezvous_gate_come(&store->gate, rank, source, now_ms);
    if (store->gate_broken && store->ops->stuck != NULL)
        tell_stuck(store, rank, true);
    else if (all || store->gate_broken)
        open_gate(store, HTTP_OK);
}

static void stuck_in_scope(void *context, int rank)
{
    tell_stuck(context, rank, false);
}

static void check_scope(struct rendezvous_store *store, struct rendezvous_scope *scope)
{
    const struct rendezvous_stuck stuck = {store->gone, stuck_in_scope, store};
    rendezvous_scope_check(scope, &stuck);
}

static void check_all_scopes(struct rendezvous_store *store)
{
    size_t at = 0;
    for (struct rendezvous_scope *scope = map_next(&store->scopes.by_name, &at); scope != NULL;
         scope = map_next(&store->scopes.by_name, &at))
        check_scope(store, scope);
}

/* What a new address means to the members of its scope. */
static void look_at_address(struct rendezvous_store *store,
                            const struct rendezvous_request *request)
{
    int64_t index;
    struct rendezvous_scope *scope = rendezvous_scopes_find(&store->scopes, request->scope);
    if (!rendezvous_key_is_index(request->key, &index))
        return;
    int rank = rendezvous_scope_stuck_rank(scope, request->key);
    if (rank >= 0)
        tell_stuck(store, rank, false);
    else if (rendezvous_scopes_find_members(&store->scopes, scope, request))
        check_scope(store, scope);
}

static void do_put(struct rendezvous_store *store, int64_t now_ms, struct rendezvous_source source,
                   const struct rendezvous_request *request)
{
    if (!rendezvous_scopes_put(&store->scopes, request)) {
        say_full(store);
        reply(store, source, HTTP_FULL);
        return;
    }
    int rank = comes_to_gate(store, request);
    if (rank >= 0)
        hold_at_gate(store, now_ms, rank, source);
    else
        reply(store, source, HTTP_OK);
    look_at_address(store, request);

    struct rendezvous_source waiter;
    while (rendezvous_held_take(&store->held, request->scope, request->key, &waiter))
        store->ops->reply(store->context, waiter, HTTP_OK, request->body, request->length);
}

static void do_get(struct rendezvous_store *store, int64_t now_ms, struct rendezvous_source source,
                   const struct rendezvous_request *request)
{
    const struct rendezvous_scope *scope = rendezvous_scopes_find(&store->scopes, request->scope);
    const void *blob;
    size_t length;
    int64_t index;
    if (scope != NULL && rendezvous_scope_get(scope, request->key, &blob, &length))
        store->ops->reply(store->context, source, HTTP_OK, blob, length);
    else if (rendezvous_key_is_index(request->key, &index) &&
             store->held.by_source.count < store->held_limit)
        rendezvous_held_add(&store->held, request->scope, request->key, source,
                            now_ms + RENDEZVOUS_HOLD_MS);
    else
        reply(store, source, HTTP_NOT_FOUND);
}

static void do_delete(struct rendezvous_store *store, struct rendezvous_source source,
                      const struct rendezvous_request *request)
{
    if (rendezvous_scopes_delete(&store->scopes, request) && store->ops->met != NULL)
        store->ops->met(store->context);
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
    bool first = request->method == RENDEZVOUS_PUT && strcmp(request->scope, "global") == 0;
    if (first && store->ops->elastic_joins != NULL &&
        store->ops->elastic_joins(store->context, source, request))
        return;
    if (epoch != store->epoch) {
        reply(store, source, HTTP_NOT_FOUND);
        return;
    }
    switch (request->method) {
    case RENDEZVOUS_GET: do_get(store, now_ms, source, request); break;
    case RENDEZVOUS_PUT: do_put(store, now_ms, source, request); break;
    case RENDEZVOUS_DELETE: do_delete(store, source, request); break;
    case RENDEZVOUS_POST: reply(store, source, HTTP_BAD_METHOD); break;
    }
}

void rendezvous_store_rank_gone(struct rendezvous_store *store, int rank)
{
    if (rank < 0 || rank >= store->size || store->gone[rank])
        return;
    store->gone[rank] = true;
    struct rendezvous_source source;
    rendezvous_gate_leave(&store->gate, rank, &source);
    if (store->gate_opened)
        check_all_scopes(store);
    store->gate_broken = true;
    if (store->ops->stuck == NULL)
        open_gate(store, HTTP_OK);
    for (int held = 0; held < store->size; held++)
        if (store->gate.places[held].here)
            tell_stuck(store, held, true);
}

void rendezvous_store_repair(struct rendezvous_store *store, uint32_t epoch)
{
    store->epoch = epoch;
    store->gate_broken = store->late_said = false;
    for (int rank = 0; rank < store->size; rank++)
        store->gone[rank] = false;
}

void rendezvous_store_drop(struct rendezvous_store *store, struct rendezvous_source source)
{
    if (!rendezvous_held_drop(&store->held, source) && store->ops->elastic_dropped != NULL)
        store->ops->elastic_dropped(store->context, source);
}

void rendezvous_store_drop_node(struct rendezvous_store *store, uint32_t node)
{
    rendezvous_held_drop_node(&store->held, node);
}

/* The next time at which the gate has something to say or to do; -1: none. */
static int64_t gate_deadline(const struct rendezvous_store *store)
{
    int64_t deadline = rendezvous_gate_deadline(&store->gate);
    if (deadline < 0 || store->gate_broken)
        return -1;
    return store->late_said || store->gate_said_ms > deadline ? deadline : store->gate_said_ms;
}

int64_t rendezvous_store_next_deadline(const struct rendezvous_store *store)
{
    int64_t held = rendezvous_held_deadline(&store->held), gate = gate_deadline(store);
    return held < 0 || (gate >= 0 && gate < held) ? gate : held;
}

static void say_late(struct rendezvous_store *store)
{
    AUTO_BUF struct buf missing = BUF_INIT(256);
    rendezvous_gate_missing(&store->gate, &missing);
    AUTO_FREE char *text =
        mem_printf("%d of %d ranks have waited at the rendezvous for %d s; not there yet: rank %s",
                   store->gate.held, store->size, GATE_NOTICE_MS / 1000, buf_text(&missing));
    store->late_said = true;
    store->ops->problem(store->context, text);
}

void rendezvous_store_expire(struct rendezvous_store *store, int64_t now_ms)
{
    struct rendezvous_source source;
    while (rendezvous_held_take_due(&store->held, now_ms, &source))
        reply(store, source, HTTP_NOT_FOUND);
    int64_t gate = gate_deadline(store);
    if (gate < 0 || gate > now_ms)
        return;
    if (!store->late_said)
        say_late(store);
    if (rendezvous_gate_deadline(&store->gate) <= now_ms)
        open_gate(store, HTTP_OK);
}
