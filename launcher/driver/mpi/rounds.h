/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps that MPI's start-up takes on all nodes together (PMIx fences, connects and groups,
 * PMI-1 barriers), as the driver sees them: a node joins when all of its ranks that take part have
 * entered the step; when the last node has joined, each gets the bytes of all, in node order. Pure.
 *
 * A step is known by its key and its ranks. A node that joins one which it has joined already is
 * ahead: that is the next round of the same step. Bytes are kept until the round is complete, in
 * all at most the limit given; a lost node fails the rounds that need it, now and later.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/plan/plan.h"

/* Borrowed for the call. */
struct mpi_step {
    uint64_t token; /* comes back in the answer */
    bool pmi1;      /* likewise */
    const char *key;
    const uint32_t *ranks; /* that take part, ascending */
    size_t rank_count;     /* 0: all of the job */
    const void *bytes;
    size_t length;
};

struct mpi_answer {
    uint64_t token;
    bool pmi1;
    const char *problem; /* NULL: the step is complete */
    uint64_t round;      /* unique to this round */
    const void *bytes;
    size_t length;
};

struct mpi_rounds;

/* `answer` is called from inside mpi_rounds_join() and mpi_rounds_node_lost(). The plan is
 * borrowed; `round_limit` is for the bytes of one round, `limit` for all that wait. */
struct mpi_rounds *mpi_rounds_create(const struct plan *plan, size_t round_limit, size_t limit,
                                     void (*answer)(void *context, int node,
                                                    const struct mpi_answer *answer),
                                     void *context);
void mpi_rounds_destroy(struct mpi_rounds *rounds); /* answers nobody; accepts NULL */

enum mpi_join {
    MPI_JOINED,
    MPI_NONSENSE, /* not a step that this node could take part in: its agent is broken */
    MPI_TOO_MUCH, /* beyond a limit; the text says which. The step cannot be completed any more */
};
enum mpi_join mpi_rounds_join(struct mpi_rounds *rounds, int node, const struct mpi_step *step,
                              struct error *err);

void mpi_rounds_node_lost(struct mpi_rounds *rounds, int node);

size_t mpi_rounds_pending(const struct mpi_rounds *rounds);

/* A round that can never be complete: true and who has joined it (a node) and who cannot any more
 * (a rank for which `gone` says so, on a node that has not joined). */
bool mpi_rounds_stuck(const struct mpi_rounds *rounds, bool (*gone)(void *context, int rank),
                      void *context, int *joined_node, int *gone_rank);
