/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames of the driver for one agent that may come by way of others. Each agent's have serial
 * numbers, from 1. The driver keeps a parcel until the agent has said, on its own link, that it
 * came. One that went through others and is not confirmed in time is sent again on another way. The
 * agent drops what came before, and keeps what came early: so all parcels arrive once, in order,
 * whatever becomes of the agents between. Pure: the owner makes the parcels, and counts time in
 * ticks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PARCEL_BYTES_A_TICK ((size_t)1 << 20) /* so much more time for what is large */
#define PARCEL_HELD_MAX ((size_t)128 << 20)   /* bytes of parcels that came early */

struct parcel { /* the first member of what the owner sends or keeps */
    struct parcel *next;
    uint64_t serial;
    size_t bytes;
    int64_t due; /* tick */
};

typedef void parcel_free(struct parcel *parcel);

struct parcels_out {
    struct parcel *first, **last; /* sent and not confirmed */
    uint64_t sent;                /* the last serial */
    uint64_t direct;              /* up to this serial, they went on the agent's own link */
    size_t bytes;                 /* of all that are kept */
    int64_t patience;             /* ticks */
    parcel_free *free;
};

void parcels_out_init(struct parcels_out *out, int64_t patience, parcel_free *release);
void parcels_out_clear(struct parcels_out *out);

/* Keeps the parcel, whose `bytes` are known, and gives it its serial. */
void parcels_out_add(struct parcels_out *out, struct parcel *parcel, int64_t now);
/* All up to this serial have come. -1: it was never sent. */
int parcels_out_confirm(struct parcels_out *out, uint64_t serial);
/* Of one that is on the agent's own link, only that link is to blame: it is not late. */
bool parcels_out_is_late(const struct parcels_out *out, int64_t now);
/* The owner sends all of them again, from the first on that did not go on the agent's own link,
 * which loses nothing. NULL: all did. */
struct parcel *parcels_out_again(struct parcels_out *out, int64_t now);
void parcels_out_went_direct(struct parcels_out *out, uint64_t serial);

struct parcels_in {
    uint64_t taken;      /* the last serial that came in order */
    uint64_t told;       /* of these, what the sender knows from us */
    struct parcel *held; /* ascending */
    size_t held_bytes;
    parcel_free *free;
};

enum parcel_when { PARCEL_NEXT, PARCEL_EARLY, PARCEL_OLD };

void parcels_in_init(struct parcels_in *in, parcel_free *release);
void parcels_in_clear(struct parcels_in *in);

/* What a parcel with this serial is. The next one counts as taken then. */
enum parcel_when parcels_in_see(struct parcels_in *in, uint64_t serial);
/* Keeps an early one, or frees it: there is no room, or it is there. It will come again. */
void parcels_in_hold(struct parcels_in *in, struct parcel *parcel);
/* One that was held and is the next now; it is the caller's. NULL: none is. */
struct parcel *parcels_in_next(struct parcels_in *in);

bool parcels_in_owes(const struct parcels_in *in); /* the sender is to hear what has come */
uint64_t parcels_in_tell(struct parcels_in *in);   /* the serial to tell it */
