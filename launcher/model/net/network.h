/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the address of each node for the workers of the other nodes. Pure.
 *
 * The rule: addresses that --network-interfaces does not allow are out, and so is loopback. Some
 * count only if a node has nothing better: bridges of containers and guests, tunnels, link-local
 * addresses, and addresses that several machines have. IPv4 goes before IPv6, unless every node has
 * an equally good address only with IPv6. Of the others, a node gets:
 *   1. the address by which the launcher reached it, if that is one of its own (no NAT), or else
 *      the one on the interface that the launcher reached;
 *   2. one in a subnet of the addresses that others got by 1, even on a bridge (a host of virtual
 *      machines reaches its guests there);
 *   3. one in a subnet that all nodes share;
 *   4. its first.
 * When all nodes are one machine (one node, or simulated hosts), each gets 127.0.0.1, or what the
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

/* Writes `count` numeric addresses to `addresses`, which the caller frees; "" for a node without
 * one. `others`: nodes on other machines may join later, so loopback is not enough even if all of
 * these are one machine. `filter`: the words of --network-interfaces, NULL-ended; NULL: none. -1
 * with STATUS_USAGE for a word without a meaning, or when a host has no interface that fits (the
 * text names the first host and its interfaces). `addresses` does not change then. */
int network_choose(const struct network_node *nodes, int count, bool others, char *const *filter,
                   char **addresses, struct error *err);
