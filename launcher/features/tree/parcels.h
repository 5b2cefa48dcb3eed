/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames of the driver for one agent that come by way of others, or on its own link, in any order.
 * Each agent's have serial numbers, from 1, and it takes them in that order. The driver keeps a
 * parcel until the agent has said, on its own link, that it came. One that is not confirmed in time
 * is sent again on the agent's own link. The agent drops what came before: so each parcel arrives
 * once, whatever becomes of the agents between. Pure: the owner makes the parcels, and counts time
 * in ticks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PARCEL_BYTES_A_TICK ((size_t)8 << 20) /* so much more time for what is large */
#define PARCEL_WINDOW 64                      /* one that is further ahead has to come again */
#define PARCEL_AHEAD_BYTES ((size_t)64 << 20) /* nor does it keep more by way of others */

struct parcel { /* the first member of what the owner sends */
    struct parcel *next;
    uint64_t serial;
    size_t bytes;
    int64_t due; /* tick */
    bool direct; /* it went on the agent's own link, which loses nothing */
};

typedef void parcel_free(struct parcel *parcel);

struct parcels_out {
    struct parcel *first, **last; /* sent and not confirmed */
    uint64_t sent;                /* the last serial */
    size_t bytes;                 /* of all that are kept */
    int64_t patience;             /* ticks */
    size_t copies;                /* that are sent, one after the other, until one is there */
    parcel_free *free;
};

void parcels_out_init(struct parcels_out *out, int64_t patience, size_t copies,
                      parcel_free *release);
void parcels_out_clear(struct parcels_out *out);

/* Keeps the parcel, whose `bytes` are known, and gives it its serial. */
void parcels_out_add(struct parcels_out *out, struct parcel *parcel, int64_t now);
/* All that is kept may take as long as if it were sent now. */
void parcels_out_wait(struct parcels_out *out, int64_t now);
/* All up to this serial have come. -1: it was never sent. */
int parcels_out_confirm(struct parcels_out *out, uint64_t serial);
/* Of one that is on the agent's own link, only that link is to blame: it is not late. */
bool parcels_out_is_late(const struct parcels_out *out, int64_t now);
/* Might the agent drop one of so many bytes that overtakes others? */
bool parcels_out_is_full(const struct parcels_out *out, size_t bytes);
/* The first that did not go on the agent's own link; there the owner sends it now. NULL: all did.
 */
struct parcel *parcels_out_again(struct parcels_out *out);
void parcels_out_went_direct(struct parcels_out *out, uint64_t serial); /* this one */

struct parcels_in {
    uint64_t taken; /* all up to this serial have come */
    uint64_t told;  /* of these, what the sender knows from us */
    uint64_t ahead; /* bit i: taken + 2 + i has come */
};

enum parcel_turn {
    PARCEL_KNOWN, /* it has come before, or is too far ahead */
    PARCEL_NEXT,  /* it is to be taken, and then all that was kept, up to in->taken */
    PARCEL_AHEAD  /* it is to be kept */
};

enum parcel_turn parcels_in_take(struct parcels_in *in, uint64_t serial);

bool parcels_in_owes(const struct parcels_in *in); /* the sender is to hear what has come */
uint64_t parcels_in_tell(struct parcels_in *in);   /* the serial to tell it */
