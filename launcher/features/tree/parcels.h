/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results of the driver for one agent. They have serial numbers, from 1. The agent takes them in
 * this order, whether they come by way of other agents or on its own link.
 *
 * What goes one way keeps its order there. Before the driver takes another way, the agent has to
 * confirm all that was sent before, on its own link. Until then, the next one waits here. What
 * others do not bring in time is sent again on the agent's own link, which loses nothing, and so is
 * all that waits. The agent drops what it has. So each parcel arrives once, whatever becomes of the
 * agents between. Pure: the owner makes and sends the parcels, and counts time in ticks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PARCEL_BYTES_A_TICK ((size_t)8 << 20) /* so much more time for what is large */
#define PARCEL_FLYING_MAX ((size_t)32 << 20)  /* by way of others; then the next one waits */
/* If more waits behind what others bring, they have a quarter of the time. */
#define PARCEL_HELD_MAX ((size_t)64 << 20)
#define PARCEL_OWN_HELD_MAX ((size_t)1 << 30) /* a link that lets more wait counts as broken */
#define PARCEL_OWN_LINK (-1)                  /* a way; others are the places of agents */

struct parcel { /* the first member of what the owner sends */
    struct parcel *next;
    const void *block;         /* what others may get, too */
    size_t bytes, block_bytes; /* of all; of the block */
    bool own_link;             /* it is not to go another way */
    int holds;                 /* lists that still need it */
    uint64_t serial;
    int64_t went, due; /* ticks */
};

typedef void parcel_free(struct parcel *parcel);

void parcel_release(struct parcel *parcel, parcel_free *release); /* one hold */

struct parcels_out {
    struct parcel *first, **last; /* all that is not confirmed */
    struct parcel *unsent;        /* the first of these that waits; NULL: none does */
    uint64_t added, reached;      /* the last serial; the last one that was sent */
    size_t bytes, flying;         /* of all; of what was sent */
    int way;                      /* of what was sent */
    int64_t patience, limit;      /* ticks: for small ones, and for any */
    size_t copies;                /* that are sent, one after the other, until one is there */
    parcel_free *free;
};

void parcels_out_init(struct parcels_out *out, int64_t patience, int64_t limit, size_t copies,
                      parcel_free *release);
void parcels_out_clear(struct parcels_out *out);

/* Keeps the parcel, of which the owner knows the first members, and gives it its serial. */
void parcels_out_add(struct parcels_out *out, struct parcel *parcel);
/* May the first unsent one go this way now? */
bool parcels_out_may_go(const struct parcels_out *out, int way);
/* It does. The owner sends it. */
void parcels_out_goes(struct parcels_out *out, int way, int64_t now);
/* All up to this serial have come. -1: it was never sent. */
int parcels_out_confirm(struct parcels_out *out, uint64_t serial);

size_t parcels_out_held(const struct parcels_out *out); /* bytes that wait */
/* Does the way bring too little? The own link has all the time, until very much waits: of it, the
 * liveness of the node is judge. */
bool parcels_out_is_late(const struct parcels_out *out, int64_t now);
/* What was sent may take as long as if it were sent now. */
void parcels_out_wait(struct parcels_out *out, int64_t now);
/* The way by others is given up: all that is kept is for the own link, and unsent. How many were
 * sent before? */
int parcels_out_return(struct parcels_out *out);

enum parcel_turn {
    PARCEL_NEXT,  /* it is to be taken */
    PARCEL_KNOWN, /* it has come before */
    PARCEL_EARLY  /* one before it has not: no way does that */
};

/* `taken`: the last serial that was taken. */
enum parcel_turn parcel_turn(uint64_t *taken, uint64_t serial);
