/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which nodes are one machine. Pure.
 *
 * The same kernel alone does not say it, because containers and network namespaces share one. Two
 * nodes are the same machine if kernel, host name and network interfaces are the same: simulated
 * hosts, or two names of one host.
 *
 * Nodes share CPUs if they are the same machine. They also share CPUs if they have the same kernel
 * and neither is limited to a part of its CPUs. Containers with CPUs of their own do not.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* From HELLO; all pointers are borrowed. */
struct machine {
    const char *boot_id; /* of its kernel; "" when not known: then it is like no other */
    const char *hostname;
    char *const *interfaces; /* "eth0 10.0.0.1/24" */
    size_t interface_count;
    uint32_t cpus_allowed, cpus_online;
};

bool machine_same(const struct machine *one, const struct machine *other);

/* For each of the nodes: `totals[i]` is how many of all ranks use the CPUs of node i, which has
 * `ranks[i]` of them. */
void machine_count_ranks(const struct machine *nodes, const int *ranks, int count, int *totals);

/* For each of the nodes: `first[i]` is the first one that is the same machine, often i itself. */
void machine_find_first(const struct machine *nodes, int count, int *first);
