/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The members of an epoch. The slots that hosts offer and the survivors go in; the members come
 * out, in rank order. Pure.
 *
 * All survivors stay. New workers fill up to `size`: they take the free slots of the offers in
 * their order, lowest slots first.
 *
 * Ranks: survivors keep their order. A new worker comes behind the last survivor of its host. Hosts
 * without a survivor come behind all these, by their place. So without survivors ranks go by place
 * and slot.
 *
 * Places: a host that stays keeps its own. One that comes takes the place that it had, if that is
 * free, else the first free one.
 *
 * Local ranks follow the slots. The cross rank of a rank is its index among the hosts that have its
 * local rank, in the order of their first ranks. The cross size is the number of these hosts.
 */
#pragma once

#include <stdbool.h>

#include "model/elastic/job.h"
#include "model/elastic/types.h"

struct elastic_offer {
    int host;
    const int *slots; /* usable ones, ascending; borrowed */
    int count;
    int place;  /* its last one; -1: none */
    bool stays; /* it has members in the present epoch */
};

struct elastic_survivor { /* its host is among the offers, its slot among the offered ones */
    int seat, host, slot;
    int rank; /* its last one */
};

struct elastic_placement_request {
    const struct elastic_offer *offers; /* each host once */
    int offer_count;
    const struct elastic_survivor *survivors; /* in rank order */
    int survivor_count;
    int size;       /* at least survivor_count, at most what is offered */
    int host_total; /* host numbers are below it */
};

struct elastic_placement {
    struct elastic_plan plan; /* without epoch and restarts; the seats of new members are -1 */
    int *places;              /* of each offer; -1: it got no member */
};

void elastic_placement_make(const struct elastic_placement_request *request,
                            struct elastic_placement *out);
void elastic_placement_clear(struct elastic_placement *placement);

/* Frees what `to` had, and empties `from`. */
void elastic_plan_move(struct elastic_plan *to, struct elastic_plan *from);

/*
 * The hosts that the next epoch would use. Spare hosts count only as far as they are needed.
 */

struct elastic_choice {
    int *hosts; /* owned; in the order in which they get new workers */
    int count;
    int size;       /* how many workers it would have */
    int64_t usable; /* slots of all usable hosts, spare ones too */
};

void elastic_choice_make(const struct elastic *e, struct elastic_choice *choice);
void elastic_choice_clear(struct elastic_choice *choice);

/* Gives the survivors, and new workers up to the size of the choice, their ranks. */
void elastic_choice_place(const struct elastic *e, const struct elastic_choice *choice,
                          const struct elastic_survivor *survivors, int count,
                          struct elastic_placement *out);
