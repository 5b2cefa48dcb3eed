/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An ordered list of hosts with their slots. -H (model/hosts/entry.h), hostfiles
 * (model/hosts/hostfile.h) and schedulers fill it. Pure.
 *
 * Rule (as in horovodrun): a host without a slot count has 1 slot. A host that appears again adds
 * its slots to the first appearance.
 *
 * The launcher connects to a host once, so a host has one user, one port, one address and so on.
 * Its traits may be given at any of its appearances and count for all of its slots.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/map.h"
#include "base/strv.h"

#define HOSTS_SLOTS_MAX 1000000 /* of one entry */
#define HOSTS_RANGE_MAX 100000  /* names that the ranges of one -H or hostfile may expand to */
#define HOSTS_MAX 100000        /* of a list that is read */

/* What a list says about a host besides its name and slots; all zero: nothing. */
struct host_traits {
    char *user;     /* to log in as; NULL: not said */
    char *address;  /* name or numeric address to connect to; NULL: the host's name */
    char *identity; /* file with the private key; NULL: not said */
    int port;       /* to connect to; 0: not said */
    int transport;  /* enum set_transport; SET_TRANSPORT_AUTO: not said */
    int gpus;       /* 0: not said */
    bool came;  /* its agent has dialled in unasked: it is not this machine, whatever its name */
    char *wdir; /* of its workers, instead of the job's; NULL: not said */
    struct strv env; /* "NAME=value" for its workers, weaker than the user's -x */
};

/* A deep copy; frees what `to` had. */
void host_traits_copy(struct host_traits *to, const struct host_traits *from);
void host_traits_clear(struct host_traits *traits); /* frees; all zero afterwards */
bool host_traits_equal(const struct host_traits *one, const struct host_traits *other);

struct host {
    char *name; /* as the user wrote it, without brackets */
    int slots;
    bool slots_given; /* somewhere a slot count was written for it */
    int max_slots;    /* the most ranks, even with --oversubscribe; 0: not said */
    struct host_traits traits;
};

/* All zero is an empty list. Read `items` and `count`; change them through hosts_add() only. */
struct host_list {
    struct host *items;
    size_t count, room;
    struct map by_name; /* position + 1 */
    uint32_t *sequence; /* the position of the host of each hosts_add(), for --map-by seq */
    size_t said, sequence_room;
};

/* Appends, or adds the slots to the host of this name (sums stop at INT_MAX). Constant time.
 * Returns the host, borrowed until the next one is added. */
struct host *hosts_add(struct host_list *list, const char *name, int slots, bool slots_given);
/* Adds its slots, and what else is known of it. */
void hosts_add_copy(struct host_list *list, const struct host *host);
const struct host *hosts_find(const struct host_list *list, const char *name); /* NULL: none */
int hosts_slots(const struct host_list *list); /* all slots together, at most INT_MAX */

/* If a list names some host several times without a number, it has a name for each slot, as PBS
 * writes them. Then a host that it names once has one slot, and counts as given with that number.
 */
void hosts_settle_slots(struct host_list *list);
/* Copies all of `from`, with its order, into an empty list. */
void hosts_copy(struct host_list *to, const struct host_list *from);
void hosts_keep(struct host_list *list, size_t count); /* the first ones */
/* Without the hosts that are `bad`. The order of the others, and all about them, stays. */
void hosts_leave_out(struct host_list *list, bool (*bad)(void *context, const char *name),
                     void *context);
void hosts_destroy(struct host_list *list);
