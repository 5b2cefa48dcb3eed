/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames of the driver for one agent that come by way of others, in any order. Each agent's have
 * serial numbers, from 1. The driver keeps a parcel until the agent has said, on its own link, that
 * it came. One that is not confirmed in time is sent again on the agent's own link. The agent drops
 * what came before: so each parcel arrives once, whatever becomes of the agents between. Pure: the
 * owner makes the parcels, and counts time in ticks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PARCEL_BYTES_A_TICK ((size_t)8 << 20) /* so much more time for what is large */
#define PARCEL_WINDOW 64                      /* one that is further ahead has to come again */

struct parcel { /* the first member of what the owner sends */
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
/* The owner sends them again, from the first on that did not go on the agent's own link, which
 * loses nothing. NULL: all did. */
struct parcel *parcels_out_again(const struct parcels_out *out);
void parcels_out_went_direct(struct parcels_out *out, uint64_t serial);

struct parcels_in {
    uint64_t taken; /* all up to this serial have come */
    uint64_t told;  /* of these, what the sender knows from us */
    uint64_t ahead; /* bit i: taken + 2 + i has come */
};

/* Whether this parcel comes for the first time, and is to be taken. */
bool parcels_in_take(struct parcels_in *in, uint64_t serial);

bool parcels_in_owes(const struct parcels_in *in); /* the sender is to hear what has come */
uint64_t parcels_in_tell(struct parcels_in *in);   /* the serial to tell it */
