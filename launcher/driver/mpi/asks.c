/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/mpi/mpi.h"

#include <stdlib.h>

#include "base/mem.h"

#define WAITING_MAX ((size_t)4 << 20)

struct ask {
    uint32_t rank;
    int owner;
    uint64_t token;
    struct mpi_asker *askers; /* first those of the question that is under way */
    size_t asked, count, room;
};

static void ask_free(void *value)
{
    struct ask *ask = value;
    free(ask->askers);
    free(ask);
}

void mpi_asks_clear(struct mpi_asks *asks)
{
    map_clear(&asks->by_rank, ask_free);
    asks->waiting = 0;
}

bool mpi_asks_full(const struct mpi_asks *asks)
{
    return asks->waiting >= WAITING_MAX;
}

/* The token names the rank as well: an answer that comes too late finds no question. */
static uint64_t new_question(struct mpi_asks *asks, struct ask *ask)
{
    ask->asked = ask->count;
    ask->token = (uint64_t)++asks->last << 32 | ask->rank;
    return ask->token;
}

uint64_t mpi_asks_add(struct mpi_asks *asks, uint32_t rank, int owner,
                      const struct mpi_asker *asker)
{
    struct ask *ask = map_get(&asks->by_rank, map_number(rank));
    bool new = ask == NULL;
    if (new) {
        ask = MEM_NEW((struct ask){.rank = rank, .owner = owner});
        map_put(&asks->by_rank, map_number(rank), ask);
    }
    MEM_ADD_ROOM(ask->askers, ask->count, ask->room) = *asker;
    asks->waiting++;
    return new ? new_question(asks, ask) : 0;
}

struct mpi_asked mpi_asks_answered(struct mpi_asks *asks, int node, uint64_t token)
{
    struct mpi_asked asked = {.rank = (uint32_t)token};
    struct ask *ask = map_get(&asks->by_rank, map_number(asked.rank));
    if (ask == NULL || ask->token != token || ask->owner != node)
        return asked;
    size_t rest = ask->count - ask->asked;
    asked.askers = ask->askers;
    asked.count = ask->asked;
    asks->waiting -= asked.count;
    if (rest == 0) {
        free(map_remove(&asks->by_rank, map_number(asked.rank)));
        return asked;
    }
    ask->askers = mem_dup(asked.askers + asked.count, rest * sizeof(*ask->askers));
    ask->count = ask->room = rest;
    asked.next = new_question(asks, ask);
    return asked;
}

/* Leaves out the askers of this node. */
static void forget(struct ask *ask, int node)
{
    size_t kept = 0, asked = 0;
    for (size_t i = 0; i < ask->count; i++) {
        if (ask->askers[i].node == node)
            continue;
        asked += i < ask->asked;
        ask->askers[kept++] = ask->askers[i];
    }
    ask->asked = asked;
    ask->count = kept;
}

void mpi_asks_node_lost(struct mpi_asks *asks, int node,
                        void (*refuse)(void *context, const struct mpi_asker *asker), void *context)
{
    size_t at = 0;
    for (struct ask *ask; (ask = map_next(&asks->by_rank, &at)) != NULL;) {
        asks->waiting -= ask->count;
        forget(ask, node);
        for (size_t i = 0; ask->owner == node && i < ask->count; i++)
            refuse(context, &ask->askers[i]);
        if (ask->owner == node)
            ask->asked = ask->count = 0;
        asks->waiting += ask->count;
    }
}
