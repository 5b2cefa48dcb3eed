/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server side of PMI-1, by which MPICH, Intel MPI and MVAPICH programs find each other. It has
 * no I/O, and serves the workers of one node in one epoch. Bytes of a worker come in through
 * pmi1_receive(), and the ops carry out the results.
 *
 * One node completes its barriers alone. With more nodes each barrier's new key-value pairs go up
 * through ops->barrier_in, and pmi1_barrier_out() brings back those of all nodes, concatenated.
 *
 * Not offered: PMI-2, connections through PMI_PORT.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/strv.h"
#include "pmi1/types.h"

struct pmi1_config {
    const char *kvsname;    /* unique to the job and epoch, without blanks */
    int size;               /* of the world */
    int universe_size;      /* 0: as size */
    const int *local_ranks; /* of this node, ascending, each in 0..size-1 */
    int local_count;
    const int *local_apps; /* app number of each local rank; NULL: all 0 */
    const int *node_of;    /* by rank, each in 0..node_count-1 */
    int node_count;
    bool spawned;        /* by a rank of another world */
    char *const *preput; /* a key, its value, ..., which the ranks find */
    size_t preput_count; /* of both */
};

struct pmi1_engine;

/* The configuration is copied. */
struct pmi1_engine *pmi1_engine_create(const struct pmi1_config *config, const struct pmi1_ops *ops,
                                       void *context);
void pmi1_engine_destroy(struct pmi1_engine *engine);

/* Bytes that a local rank wrote, cut anywhere. -1: it broke the protocol; the text names the rank,
 * its state is PMI1_BROKEN, and whatever else it writes is ignored. */
int pmi1_receive(struct pmi1_engine *engine, int rank, const char *bytes, size_t length,
                 struct error *err);

/* Ends the barrier that ops->barrier_in announced. -1: no such barrier, or the bytes are not pairs
 * of other engines. */
int pmi1_barrier_out(struct pmi1_engine *engine, const char *bytes, size_t length,
                     struct error *err);

/* Answers ops->name: `port` for a lookup that found something, "" for the others, NULL: failed. */
void pmi1_name_reply(struct pmi1_engine *engine, int rank, enum pmi1_name_request request,
                     const char *port);

/* Answers ops->spawn: the new ranks are about to run, or not. */
void pmi1_spawn_reply(struct pmi1_engine *engine, int rank, bool ok);

/* Some time after ops->spawn_refused. -1: the end of that request has not come, so that the rank
 * and we would wait for each other; as after a broken protocol. */
int pmi1_spawn_unended(struct pmi1_engine *engine, int rank, struct error *err);

enum pmi1_state pmi1_rank_state(const struct pmi1_engine *engine, int rank);

/* Sets in `env` the variables of a worker that inherits `fd`: its rank, the sizes and `fd` itself.
 */
void pmi1_worker_env(const struct pmi1_engine *engine, int rank, int fd, struct strv *env);
