/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The place of each rank, and the reader of rankfiles, which give it. Pure.
 *
 * A host is named, or counted: +n0 is the first of the host list, +n1 the second.
 */
#pragma once

#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"
#include "model/hosts/hosts.h"

struct rank_place {
    int host;   /* index into `names`; below 0: the host +nK as -1 - K */
    char *cpus; /* as the rankfile says, checked for its form; NULL: none */
    int line;   /* of the rankfile; 0: none */
};

/* All zero is an empty list. */
struct rank_list {
    struct rank_place *items; /* by rank, none missing once it has been parsed */
    size_t count, room;
    struct host_list names; /* in the order of their first rank; slots: how many ranks name it */
    char *source;           /* name of the rankfile */
};

/* The index into `hosts` of each rank's host, `count` entries, which the caller owns. NULL and
 * STATUS_USAGE: `hosts` has no such host; the text says which and where it was named. */
int *rank_list_resolve(const struct rank_list *list, const struct host_list *hosts,
                       struct error *err);
void rank_list_destroy(struct rank_list *list);

/* Appends the `count` ranks, which are in ascending order; at least one. The text is bounded: after
 * 8 ranges it ends with ",...". */
void rank_ranges(const int *ranks, int count, struct buf *out);
void rank_ranges_bare(const int *ranks, int count, struct buf *out); /* "3", "0-7,9" */

/*
 * Rankfiles, as Open MPI has them: where each rank runs and which CPUs it gets.
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

/* Fills an empty list. */
int rankfile_parse(const char *bytes, size_t length, const char *file, struct rank_list *out,
                   struct error *err);
