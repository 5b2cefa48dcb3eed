/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps that MPI takes on all nodes together at its start (PMIx fences, connects and groups,
 * PMI-1 barriers). A node joins a step when all of its ranks that take part have entered it. When
 * the last node has joined, each node gets the bytes of all nodes, in node order. Pure.
 *
 * A step is identified by its key, its ranks, and `on_demand`. If a node joins a step that it has
 * joined already, it starts the next round of that step. Bytes are kept until the round is
 * complete, in all at most the given limit. A lost node fails all rounds that need it, now and
 * later.
 *
 * What all nodes get is made smaller if that helps. If it is still more than the given limit for
 * all nodes together, and the nodes can ask for what they need, they get nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "io/send_queue.h"
#include "model/plan/plan.h"

/* Borrowed for the call. */
struct mpi_step {
    uint64_t token; /* comes back in the answer */
    uint32_t epoch; /* likewise */
    bool pmi1;      /* likewise */
    const char *key;
    const uint32_t *ranks; /* that take part, ascending */
    size_t rank_count;     /* 0: all ranks with which the job began */
    const void *bytes;
    size_t length;
    bool on_demand; /* the nodes can do without the bytes of the others */
    bool kept;      /* the node has not given its bytes; only if `on_demand` */
};

struct mpi_answer {
    uint64_t token;
    uint32_t epoch;
    bool pmi1;
    const char *problem;       /* NULL: the step is complete */
    uint64_t round;            /* unique to this round */
    struct shared_block *data; /* of all nodes; whoever keeps it holds it */
    size_t expanded;           /* not 0: data are so many bytes, made smaller (wire/packing.h) */
};

struct mpi_limits {
    size_t round;  /* for the bytes of one round */
    size_t all;    /* for those of all rounds that wait */
    size_t shrink; /* the least bytes that are made smaller; 0: none are */
    size_t demand; /* the most bytes to send in a round, if the nodes can ask instead; SIZE_MAX:
                      they shall not ask */
};

struct mpi_rounds;

/* `answer` is called from inside mpi_rounds_join() and mpi_rounds_node_lost(). The plan is
 * borrowed. */
struct mpi_rounds *mpi_rounds_create(const struct plan *plan, const struct mpi_limits *limits,
                                     void (*answer)(void *context, int node,
                                                    const struct mpi_answer *answer),
                                     void *context);
/* The job has more ranks: the new plan begins with the old one, and has the same nodes. */
void mpi_rounds_grow(struct mpi_rounds *rounds, const struct plan *plan);
void mpi_rounds_destroy(struct mpi_rounds *rounds); /* answers nobody; accepts NULL */

enum mpi_join {
    MPI_JOINED,
    MPI_NONSENSE, /* a step in which this node cannot take part: its agent is broken */
    MPI_TOO_MUCH, /* beyond a limit, which the text names; the step can never complete */
};
enum mpi_join mpi_rounds_join(struct mpi_rounds *rounds, int node, const struct mpi_step *step,
                              struct error *err);

void mpi_rounds_node_lost(struct mpi_rounds *rounds, int node);

size_t mpi_rounds_pending(const struct mpi_rounds *rounds);

/* Whether a round can never complete. If so: a node that has joined it, and a rank that cannot
 * join any more (`gone` is true, and its node has not joined). */
bool mpi_rounds_stuck(const struct mpi_rounds *rounds, bool (*gone)(void *context, int rank),
                      void *context, int *joined_node, int *gone_rank);
