/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rankfiles, as Open MPI has them: where each rank runs and which CPUs it gets. Pure.
 *
 *     rank 0=node1 slot=0-3       # cores 0 to 3 of node1
 *     rank 1=node1 slot=1:0-2     # cores 0 to 2 of its second package
 *     rank 2=+n1 slot=4,6         # cores 4 and 6 of the second host of the list
 *     rank 3=node2                # anywhere on node2
 *
 * One rank a line, in any order, each from 0 on exactly once; `#` begins a comment. `slots` may be
 * written for `slot`. CPUs are core numbers as docs/binding.md counts them. After `P:`, the numbers
 * and ranges that follow are cores of package P. `*` is all cores, `;` separates like `,`. Only the
 * form is checked here, since each node knows its own cores.
 *
 * Errors have STATUS_USAGE and say file:line and what was expected.
 */
#pragma once

#include "model/plan/rank_list.h"

/* Fills an empty list. */
int rankfile_parse(const char *bytes, size_t length, const char *file, struct rank_list *out,
                   struct error *err);
