/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mapping: the rule by which ranks are laid out over the hosts. Pure.
 *
 *   slot         host after host, each up to its slots
 *   node         one rank on each host in turn, again and again, while it has slots
 *   ppr:N:node   N ranks on each host, host after host; N may be a word (enum map_each)
 *   numa         over the hosts as slot; on each host round its memory nodes (its agent does that)
 *   seq          one rank for each entry of the host list, in the order in which they were written
 *   a list       a rankfile has the host of each rank
 *
 * No host gets more ranks than slots. With oversubscribe the rule begins again with fresh slots as
 * often as needed, up to max_slots of each host. Where the rule itself says how many ranks a host
 * has (ppr, a list), a host without a slot count has that many slots.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "model/hosts/hosts.h"
#include "model/plan/rank_list.h"

#define PLAN_SIZE_MAX 10000000 /* ranks of one job */

/* A word for N, which the caller of the plan resolves: it knows the hosts. */
enum map_each { MAP_EACH_NUMBER, MAP_EACH_GPU, MAP_EACH_CPU, MAP_EACH_AUTO };

enum map_rule { MAP_SLOT, MAP_NODE, MAP_PPR, MAP_NUMA, MAP_SEQ, MAP_LIST };

/* All zero is the rule `slot`. */
struct mapping {
    enum map_rule rule;
    int per_node; /* MAP_PPR; 0: `each` says what to count */
    enum map_each each;
    struct rank_list list; /* MAP_LIST */
    int cpus_per_proc;     /* cores for each rank, as `:PE=N` says; 0: not said */
    bool oversubscribe;    /* `:OVERSUBSCRIBE` */
};

/* What --map-by says: one of the words above, with Open MPI's `:PE=N`, `:OVERSUBSCRIBE` and
 * `:NOOVERSUBSCRIBE` behind it, or those alone. Case does not count. Fills an all-zero struct; -1
 * and STATUS_USAGE. */
int mapping_parse(const char *text, struct mapping *out, struct error *err);
void mapping_destroy(struct mapping *mapping); /* all zero afterwards */

/* Does the rule itself say how many ranks there are? */
bool mapping_has_size(const struct mapping *mapping);

/* How many ranks there are when -np is not given. */
int64_t mapping_size(const struct mapping *mapping, const struct host_list *hosts);

/* The slots of a host by this rule, if `ranks` ranks are there. */
int mapping_slots(const struct mapping *mapping, const struct host *host, int ranks);

/* The host of each of `size` ranks (at least 1), as indices into `hosts`; the caller owns them.
 * NULL and STATUS_NO_SLOTS: the hosts have too few slots, as the text shows; NULL and STATUS_USAGE:
 * the rule contradicts the size, or names a host that is missing. */
int *mapping_assign(const struct mapping *mapping, const struct host_list *hosts, int size,
                    bool oversubscribe, struct error *err);
