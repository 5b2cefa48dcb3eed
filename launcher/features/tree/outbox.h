/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the driver has for the agents of the tree: which way each parcel takes, and when. Parcels of
 * one turn of the loop that follow each other and have the same block leave as one. There is one
 * such message for each agent that the driver reaches itself. Pure: the owner makes the parcels,
 * and knows the links.
 */
#pragma once

#include "features/tree/parcels.h"
#include "features/tree/routes.h"

struct outbox;

struct outbox_ops {
    /* May this place's own link get so many bytes more, and still half of its queue for others? */
    bool (*takes)(void *context, int place, size_t bytes);
    /* The first one of a turn waits for outbox_flush(). */
    void (*ready)(void *context);
    /* As one, in this order; they have the same block, and are borrowed. It may not call back. */
    void (*send)(void *context, int hop, struct parcel *const *parcels, size_t count);
    /* Parcels for this place are late, or too many wait. It may give up ways. */
    void (*late)(void *context, int place);
    /* Ticks since its agent had sent all that has come from it: what it confirmed then may not be
     * here, as output is before it. */
    int64_t (*behind)(void *context, int place);
    parcel_free *free;
};

/* `limit`: ticks after which anything is late. `routes` lives longer. */
struct outbox *outbox_create(const struct tree_routes *routes, int64_t limit,
                             const struct outbox_ops *ops, void *context);
void outbox_destroy(struct outbox *outbox); /* accepts NULL */

/* It leaves with outbox_flush(), at the end of a turn, if it may go now; else later. */
void outbox_add(struct outbox *outbox, int place, struct parcel *parcel);
void outbox_flush(struct outbox *outbox);
bool outbox_tick(struct outbox *outbox);              /* false: nobody is owed anything */
void outbox_return(struct outbox *outbox, int place); /* its way is given up */
int outbox_confirm(struct outbox *outbox, int place, uint64_t serial); /* -1: never sent */
void outbox_forget(struct outbox *outbox, int place);                  /* its agent is lost */
/* Its agent was silent, and answers again: what it got in that time is not late yet. */
void outbox_heard(struct outbox *outbox, int place);

bool outbox_owes(const struct outbox *outbox, int place);       /* is any not confirmed? */
bool outbox_owes_below(const struct outbox *outbox, int place); /* or for one below it? */
bool outbox_is_late(const struct outbox *outbox, int place);
bool outbox_on_own_link(const struct outbox *outbox, int place); /* what was sent last */
/* Bytes that are not on its link yet, and may have to go there. */
size_t outbox_waiting(const struct outbox *outbox, int place);

struct outbox_counts {
    int64_t passed, repeated; /* parcels sent through others; sent again */
};
const struct outbox_counts *outbox_counts(const struct outbox *outbox);
