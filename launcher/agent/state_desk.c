/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/state_desk.h"

#include <stdlib.h>

#include "agent/rank_stacks.h"
#include "agent/stack_pool.h"
#include "base/mem.h"
#include "node/descendants.h"

#define ASKED_THREADS 1000 /* more cost more than a walk through /proc */

/* A report whose stacks are being read. */
struct pending {
    struct pending *next;
    struct state_desk *desk;
    struct crew_states states;
    struct rank_stacks *stacks;
    struct asked asked;
};

struct state_desk {
    struct stack_pool *pool;
    struct pending *first;
};

static void destroy_pending(struct pending *pending)
{
    struct pending **at = &pending->desk->first;
    while (*at != pending)
        at = &(*at)->next;
    *at = pending->next;
    rank_stacks_destroy(pending->stacks);
    crew_states_destroy(&pending->states);
    free(pending);
}

static void stacks_are_read(void *context)
{
    struct pending *pending = context;
    Hvdrun__StateReport message = HVDRUN__STATE_REPORT__INIT;
    const struct crew_states *states = &pending->states;
    message.seats = states->seats;
    message.texts = states->texts.items;
    message.n_seats = message.n_texts = states->texts.count;
    rank_stacks_fill(pending->stacks, &message);
    asked_answer(&pending->asked, &message.base);
    rank_stacks_free(&message);
    destroy_pending(pending);
}

struct state_desk *state_desk_create(struct loop *loop, struct helpers *helpers,
                                     const char *program)
{
    struct state_desk *desk = mem_alloc(sizeof(*desk));
    *desk = (struct state_desk){.pool = stack_pool_create(loop, helpers, program)};
    return desk;
}

void state_desk_destroy(struct state_desk *desk)
{
    if (desk == NULL)
        return;
    while (desk->first != NULL)
        destroy_pending(desk->first);
    stack_pool_destroy(desk->pool);
    free(desk);
}

void state_desk_ask(struct state_desk *desk, const struct crews *crews,
                    const struct worker_lines *lines, const struct asked *asked, bool native)
{
    struct pending *pending = mem_alloc(sizeof(*pending));
    struct descendants_table *processes = descendants_table_read(ASKED_THREADS);
    *pending = (struct pending){.next = desk->first, .desk = desk, .asked = *asked};
    crews_states(crews, lines, processes, &pending->states);
    pending->stacks =
        rank_stacks_create(desk->pool, pending->states.pids, pending->states.texts.count, processes,
                           native, stacks_are_read, pending);
    descendants_table_destroy(processes);
    desk->first = pending;
}
