/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --rank-map: the host of each rank in their order. Pure.
 *
 * Entries with commas between them, each HOST for one rank or HOST*N for N ranks in a row:
 * "a,b,a*2" puts the ranks 0, 2 and 3 on a and rank 1 on b. HOST may hold ranges
 * (model/hosts/hostlist_range.h), of which each name takes its N ranks, be an IPv6 address in
 * brackets, or be counted (+n0). Errors have STATUS_USAGE and name the entry.
 */
#pragma once

#include "model/plan/rank_list.h"

/* Fills an empty list. */
int rank_map_parse(const char *text, struct rank_list *out, struct error *err);
