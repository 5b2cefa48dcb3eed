/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the interface by which the workers of this node talk to those of other nodes.
 *
 * The rule: the interface of the routes to the other nodes. The kernel is asked; nothing is sent.
 * If the routes differ, the interface of most of them. Without a route, the interface of the
 * address by which the others know this node; without that, the fittest one. In a job on one
 * machine it is loopback. An interface that the user's filter (model/net/address.h) excludes is
 * chosen only if the filter excludes all.
 *
 * mpi_params_*: whether the user has chosen the interface for Open MPI.
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
    const char *told;    /* by which other nodes know this one; "" or NULL: not known */
    char *const *filter; /* words of --network-interfaces; NULL: none */
    /* For tests: the source address of packets to `peer`, into 46 bytes; false: no route.
     * NULL: route_source(). */
    bool (*source)(const char *peer, char *text);
};

struct route {
    char *iface;   /* the one */
    char *ifaces;  /* all that may be used, comma-separated */
    char *address; /* numeric, of `iface` */
    /* Subnets for Open MPI, since names of interfaces differ between hosts. `include`: those of the
     * filter's interfaces; without a filter that of loopback, if there are other nodes and all of
     * them are this machine. Without it, Open MPI does not use loopback. Else NULL.
     * `exclude`: those of interfaces that are up but not fit for traffic between hosts, NULL
     * without any or with a filter. */
    char *include, *exclude;
};

void route_choose(const struct route_request *request, struct route *out);
void route_leave_subnets(struct route *route); /* forgets `include` and `exclude` */
void route_destroy(struct route *route);       /* what it points to */

/* The source address that packets to `peer` (numeric) would have, into 46 bytes of `text`. */
bool route_source(const char *peer, char *text);

/*
 * Does one of Open MPI's parameter files choose TCP's interfaces? Either value may be NULL.
 *
 * Open MPI refuses btl_tcp_if_include and btl_tcp_if_exclude together, from whatever sources. So we
 * read the files before we set one of them in the environment of workers: the user's
 * ~/.openmpi/mca-params.conf, etc/openmpi-mca-params.conf next to each bin folder of PATH, and
 * those of packages in /etc. A file that cannot be read counts as empty.
 */
bool mpi_params_choose_tcp(const char *home, const char *path);

/* Does the text of such a file set one of the two? */
bool mpi_params_text_chooses_tcp(const char *text);
