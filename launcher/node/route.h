/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which interface of this node its workers talk to those of other nodes by.
 *
 * The rule: the interface that the routes to the other nodes leave by (the kernel is asked, nothing
 * is sent); where they differ, the one that most of them leave by. Without a route, the interface
 * of the address that the others were told; without that, the fittest. Where no other machine takes
 * part it is loopback. What the user's filter (model/net/filter.h) does not let pass is never
 * chosen while there is anything that passes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "node/facts.h"

#define ROUTE_PEERS_MAX 16 /* different ones that the kernel is asked about */

/* All pointers are borrowed. */
struct route_request {
    const struct node_address *own; /* of this node */
    size_t own_count;
    char *const *peers; /* numeric addresses of the other nodes; "": not known */
    size_t peer_count;
    const char *told;    /* by which the others know this node; "" or NULL: not known */
    char *const *filter; /* words of --network-interfaces; NULL: none */
    /* For tests: the source address of packets to `peer`, into 46 bytes; false: no route.
     * NULL: route_source(). */
    bool (*source)(const char *peer, char *text);
};

struct route {
    char *iface;   /* the one */
    char *ifaces;  /* all that may be used, comma-separated */
    char *address; /* numeric, of `iface` */
    /* Subnets for those who want them so (Open MPI: names differ between hosts, subnets need not):
     * of the filter's interfaces, NULL without a filter or alone; and of those that are up but not
     * fit for traffic between hosts, NULL when there are none or with a filter. */
    char *include, *exclude;
};

void route_choose(const struct route_request *request, struct route *out);
void route_leave_subnets(struct route *route); /* forgets `include` and `exclude` */
void route_destroy(struct route *route);       /* what it points to */

/* The source address that packets to `peer` (numeric) would have, into 46 bytes of `text`. */
bool route_source(const char *peer, char *text);
