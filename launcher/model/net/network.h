/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which address of each node the other nodes' workers are told. Pure.
 *
 * The rule. What --network-interfaces does not allow is out, and so is loopback. Bridges of
 * containers and guests, tunnels, link-local addresses, and addresses that several machines have
 * count only where nothing better is there. IPv4 goes before IPv6, unless it is only with IPv6 that
 * every node has something as good. Of what is left, a node gets
 *   1. the address by which the launcher reached it, if that is one of its own (no NAT), or else
 *      the one on the interface that the launcher reached;
 *   2. one in a subnet of the addresses that others got by 1, even on a bridge (a host of virtual
 *      machines is the neighbour of its guests there);
 *   3. one in a subnet that all nodes share;
 *   4. its first.
 * Nodes that are all one machine (one node; agents under made-up names) get 127.0.0.1, or what the
 * words of --network-interfaces include.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* All pointers are borrowed. */
struct network_node {
    const char *name;        /* for errors */
    const char *boot_id;     /* of its kernel; "" when not known */
    char *const *interfaces; /* "eth0 10.0.0.1/24", as HELLO carries them */
    size_t interface_count;
    const char *reached_by; /* numeric; "" or NULL: not known, or its agent was started here */
};

/* Writes `count` numeric addresses to `addresses`, each of them the caller's; "" for a node that
 * has none to offer. `others`: nodes on other machines may join later, so loopback will not do even
 * if all of these are one machine. `filter`: the words of --network-interfaces, NULL-ended; NULL:
 * none. -1 with STATUS_USAGE for a word that means nothing, or when some hosts have no interface
 * that fits (the text names the first and what it has); `addresses` is left alone then. */
int network_choose(const struct network_node *nodes, int count, bool others, char *const *filter,
                   char **addresses, struct error *err);
