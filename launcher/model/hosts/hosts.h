/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host lists: `-H` text in (hostfiles: model/hosts/hostfile.h), an ordered list of names and slots
 * out. Pure.
 *
 * Rule (as horovodrun): a host without a slot count has 1 slot; a host that appears again adds its
 * slots to the first appearance. Names are checked by name_is_safe() (D14).
 *
 * An entry is NAME or NAME:SLOTS, with USER@ in front where another user logs in there. NAME may
 * hold ranges (model/hosts/hostlist_range.h): `node[01-16]:4`. An IPv6 address stands in brackets,
 * `[fe80::1%eth0]:2`; an entry that starts with a bracket with a colon inside is one.
 *
 * A host is connected to once, so it has one user, one port, one address and so on: its traits may
 * be said at any of its appearances and count for all of its slots, and two that differ are an
 * error.
 *
 * All errors have STATUS_USAGE and name the entry; what stood before the bad entry stays in the
 * list, which the caller destroys as usual.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strv.h"

#define HOSTS_SLOTS_MAX 1000000 /* of one entry */
#define HOSTS_RANGE_MAX 100000  /* names that the ranges of one -H or hostfile may stand for */
#define HOSTS_MAX 100000        /* of a list that is read */

/* What a list says about a host beside its name and slots; all zero: nothing. */
struct host_traits {
    char *user;      /* to log in as; NULL: not said */
    char *address;   /* name or numeric address to connect to; NULL: the host's name */
    char *identity;  /* file with the private key; NULL: not said */
    int port;        /* to connect to; 0: not said */
    int transport;   /* enum set_transport; SET_TRANSPORT_AUTO: not said */
    int gpus;        /* 0: not said */
    char *wdir;      /* of its workers, instead of the job's; NULL: not said */
    struct strv env; /* "NAME=value" for its workers, weaker than the user's -x */
};

/* Deep; what `to` had is gone. */
void host_traits_copy(struct host_traits *to, const struct host_traits *from);
void host_traits_clear(struct host_traits *traits); /* frees; all zero afterwards */
bool host_traits_equal(const struct host_traits *one, const struct host_traits *other);

struct host {
    char *name; /* as the user wrote it, without brackets */
    int slots;
    bool slots_given; /* somewhere a slot count was written for it */
    int max_slots;    /* more ranks it never gets, even with --oversubscribe; 0: not said */
    struct host_traits traits;
};

/* All zero is an empty list. Read `items` and `count`; change them through hosts_add() only. */
struct host_list {
    struct host *items;
    size_t count, room;
    uint32_t *index; /* hash table over the names: position + 1, 0 = free */
    size_t index_room;
    uint32_t *sequence; /* the position of the host of each hosts_add(), for --map-by seq */
    size_t said, sequence_room;
};

/* Appends, or adds the slots to the host of this name (sums stop at INT_MAX). Constant time.
 * Returns the host, borrowed until the next one is added. */
struct host *hosts_add(struct host_list *list, const char *name, int slots, bool slots_given);
const struct host *hosts_find(const struct host_list *list, const char *name); /* NULL: none */
int hosts_slots(const struct host_list *list); /* all slots together, at most INT_MAX */

/* A list that names a host several times without a number has a name for each slot, as PBS writes
 * them: what it says once is one slot then, and no more is to be found out about it. */
void hosts_settle_slots(struct host_list *list);
/* All of `from`, its order too, into an empty list. */
void hosts_copy(struct host_list *to, const struct host_list *from);
void hosts_destroy(struct host_list *list);
