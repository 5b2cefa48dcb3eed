/* SPDX-License-Identifier: Apache-2.0 */
#include "rendezvous/gate.h"

#include <stdlib.h>

#include "base/mem.h"

#define SHOWN_MAX 8

struct place {
    bool here;
    struct rendezvous_source source;
};

struct rendezvous_gate {
    struct place *places; /* by rank */
    int ranks, held;
    int taken_below; /* no rank below it is here */
    int64_t deadline_ms;
};

struct rendezvous_gate *rendezvous_gate_create(void)
{
    return mem_alloc(sizeof(struct rendezvous_gate));
}

void rendezvous_gate_destroy(struct rendezvous_gate *gate)
{
    if (gate == NULL)
        return;
    free(gate->places);
    free(gate);
}

void rendezvous_gate_reset(struct rendezvous_gate *gate, int ranks)
{
    free(gate->places);
    *gate = (struct rendezvous_gate){.ranks = ranks};
    gate->places = ranks > 0 ? mem_array((size_t)ranks, sizeof(*gate->places)) : NULL;
}

bool rendezvous_gate_come(struct rendezvous_gate *gate, int rank, struct rendezvous_source source,
                          int64_t now_ms)
{
    struct place *place = &gate->places[rank];
    if (gate->held == 0)
        gate->deadline_ms = now_ms + RENDEZVOUS_GATE_MS;
    gate->held++;
    *place = (struct place){true, source};
    if (rank < gate->taken_below)
        gate->taken_below = rank;
    return gate->held == gate->ranks;
}

bool rendezvous_gate_take(struct rendezvous_gate *gate, struct rendezvous_source *source, int *rank)
{
    if (gate->held == 0)
        return false;
    int at = gate->taken_below;
    while (!gate->places[at].here)
        at++;
    gate->places[at].here = false;
    gate->held--;
    gate->taken_below = gate->held == 0 ? 0 : at + 1;
    *source = gate->places[at].source;
    if (rank != NULL)
        *rank = at;
    return true;
}

bool rendezvous_gate_leave(struct rendezvous_gate *gate, int rank, struct rendezvous_source *source)
{
    struct place *place = &gate->places[rank];
    if (!place->here)
        return false;
    place->here = false;
    gate->held--;
    if (source != NULL)
        *source = place->source;
    return true;
}

bool rendezvous_gate_holds(const struct rendezvous_gate *gate, int rank)
{
    return gate->places[rank].here;
}

int rendezvous_gate_held(const struct rendezvous_gate *gate)
{
    return gate->held;
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
