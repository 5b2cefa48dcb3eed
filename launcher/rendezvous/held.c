/* SPDX-License-Identifier: Apache-2.0 */
#include "rendezvous/held.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define SHOWN_MAX 8

/* ---- Requests for a key ---------------------------------------------------------------------- */

struct waiter {
    TAILQ_ENTRY(waiter) all;          /* in order of arrival */
    struct waiter *sibling, *brother; /* those of the same key: next and previous */
    struct rendezvous_source source;
    int64_t deadline_ms;
    char *path; /* "scope/key": neither part holds a '/' */
};

static struct map_key source_key(const struct rendezvous_source *source)
{
    return map_bytes(source, sizeof(*source));
}

void rendezvous_held_init(struct rendezvous_held *held)
{
    *held = (struct rendezvous_held){.by_path = {.count = 0}};
    TAILQ_INIT(&held->waiters);
}

static void remove_waiter(struct rendezvous_held *held, struct waiter *waiter)
{
    TAILQ_REMOVE(&held->waiters, waiter, all);
    if (waiter->sibling != NULL)
        waiter->sibling->brother = waiter->brother;
    if (waiter->brother != NULL)
        waiter->brother->sibling = waiter->sibling;
    else if (waiter->sibling != NULL)
        map_put(&held->by_path, map_text(waiter->sibling->path), waiter->sibling);
    else
        map_remove(&held->by_path, map_text(waiter->path));
    map_remove(&held->by_source, source_key(&waiter->source));
    free(waiter->path);
    free(waiter);
}

void rendezvous_held_clear(struct rendezvous_held *held)
{
    while (!TAILQ_EMPTY(&held->waiters))
        remove_waiter(held, TAILQ_FIRST(&held->waiters));
    map_clear(&held->by_path, NULL);
    map_clear(&held->by_source, NULL);
}

void rendezvous_held_add(struct rendezvous_held *held, const char *scope, const char *key,
                         struct rendezvous_source source, int64_t deadline_ms)
{
    rendezvous_held_drop(held, source); /* a repeated request replaces the first */
    struct waiter *waiter = mem_alloc(sizeof(*waiter));
    waiter->source = source;
    waiter->deadline_ms = deadline_ms;
    waiter->path = mem_printf("%s/%s", scope, key);
    TAILQ_INSERT_TAIL(&held->waiters, waiter, all);
    waiter->sibling = map_put(&held->by_path, map_text(waiter->path), waiter);
    if (waiter->sibling != NULL)
        waiter->sibling->brother = waiter;
    map_put(&held->by_source, source_key(&waiter->source), waiter);
}

bool rendezvous_held_drop(struct rendezvous_held *held, struct rendezvous_source source)
{
    struct waiter *waiter = map_get(&held->by_source, source_key(&source));
    if (waiter == NULL)
        return false;
    remove_waiter(held, waiter);
    return true;
}

void rendezvous_held_drop_node(struct rendezvous_held *held, uint32_t node)
{
    struct waiter *waiter = TAILQ_FIRST(&held->waiters);
    while (waiter != NULL) {
        struct waiter *next = TAILQ_NEXT(waiter, all);
        if (waiter->source.node == node)
            remove_waiter(held, waiter);
        waiter = next;
    }
}

bool rendezvous_held_take(struct rendezvous_held *held, const char *scope, const char *key,
                          struct rendezvous_source *source)
{
    AUTO_FREE char *path = mem_printf("%s/%s", scope, key);
    struct waiter *waiter = map_get(&held->by_path, map_text(path));
    if (waiter == NULL)
        return false;
    *source = waiter->source;
    remove_waiter(held, waiter);
    return true;
}

bool rendezvous_held_take_due(struct rendezvous_held *held, int64_t now_ms,
                              struct rendezvous_source *source)
{
    struct waiter *oldest = TAILQ_FIRST(&held->waiters);
    if (oldest == NULL || oldest->deadline_ms > now_ms)
        return false;
    *source = oldest->source;
    remove_waiter(held, oldest);
    return true;
}

int64_t rendezvous_held_deadline(const struct rendezvous_held *held)
{
    const struct waiter *oldest = TAILQ_FIRST(&held->waiters);
    return oldest == NULL ? -1 : oldest->deadline_ms;
}

/* ---- The gate -------------------------------------------------------------------------------- */

void rendezvous_gate_reset(struct rendezvous_gate *gate, int ranks)
{
    free(gate->places);
    *gate = (struct rendezvous_gate){.ranks = ranks};
    gate->places = ranks > 0 ? mem_array((size_t)ranks, sizeof(*gate->places)) : NULL;
}

bool rendezvous_gate_come(struct rendezvous_gate *gate, int rank, struct rendezvous_source source,
                          int64_t now_ms)
{
    if (gate->held == 0)
        gate->deadline_ms = now_ms + RENDEZVOUS_GATE_MS;
    gate->held++;
    gate->places[rank] = (struct rendezvous_place){true, source};
    return gate->held == gate->ranks;
}

bool rendezvous_gate_leave(struct rendezvous_gate *gate, int rank, struct rendezvous_source *source)
{
    struct rendezvous_place *place = &gate->places[rank];
    if (!place->here)
        return false;
    place->here = false;
    gate->held--;
    *source = place->source;
    return true;
}

int64_t rendezvous_gate_deadline(const struct rendezvous_gate *gate)
{
    return gate->held > 0 ? gate->deadline_ms : -1;
}

void rendezvous_gate_missing(const struct rendezvous_gate *gate, struct buf *out)
{
    int shown = 0, more = 0;
    for (int rank = 0; rank < gate->ranks; rank++) {
        if (gate->places[rank].here)
            continue;
        if (shown == SHOWN_MAX)
            more++;
        else
            buf_printf(out, "%s%d", shown++ > 0 ? ", " : "", rank);
    }
    if (more > 0)
        buf_printf(out, " and %d more", more);
}
