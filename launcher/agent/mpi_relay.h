/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connects the MPI servers of this node (PMIx and our PMI-1 engine) with the driver. Their messages
 * to other nodes become MPI_* frames, and the frames that come back become calls. Spawns and the
 * names of PMI-1 need the driver in jobs of one node, too. It has no state.
 */
#pragma once

#include "agent/pmi1_wire.h"
#include "agent/post.h"
#include "pmix/pmix_server.h"

/* -1: more data than a message holds; nothing was sent. Those of a fence stay here then, and other
 * nodes ask for them. */
int mpi_relay_collect(const struct post *post, uint64_t token, const char *operation,
                      const int *ranks, size_t count, const void *bytes, size_t length);
int mpi_relay_barrier(const struct post *post, const char *bytes, size_t length); /* PMI-1 */
int mpi_relay_store(const struct post *post, uint64_t token,
                    const struct pmix_store_request *request);

void mpi_relay_modex(const struct post *post, uint64_t token, int rank);
/* Data that are too large for a message are reported as not found. */
void mpi_relay_modex_data(const struct post *post, struct pmix_asker asker, bool ok,
                          const void *bytes, size_t length);
void mpi_relay_name(const struct post *post, int rank, enum pmi1_name_request request,
                    const char *service, const char *port); /* PMI-1 */
void mpi_relay_rank_ended(const struct post *post, const char *nspace, int rank);
void mpi_relay_event(const struct post *post, const void *bytes, size_t length);
void mpi_relay_signal(const struct post *post, int rank, int signal); /* also PMIX_EVERY_RANK */
/* `given`: the environment with which the rank that asks was started, each variable with its NUL.
 * Open MPI hands all OMPI_* of it to the new ranks, although they get those of their own node.
 * -1: the request is too large. */
int mpi_relay_spawn(const struct post *post, uint64_t token, const struct pmix_spawn *request,
                    const struct buf *given);
/* The same over PMI-1. `number` is the seat of the rank. */
int mpi_relay_spawn_pmi1(const struct post *post, int rank, int number,
                         const struct pmi1_spawn *request);

/* Where frames from the driver go; what is NULL gets none. */
struct mpi_relay_ends {
    const struct log *log;
    struct pmix_server *pmix;
    struct pmi1_wire *pmi1;
    const char *job_id;
    void (*signal)(void *context, int rank, int signal); /* a rank of this node, or all of them */
    void *context;
};

/* Any MPI_* frame of the present epoch, or SPAWNED, with the message of its type. Returns
 * what is wrong with it, or NULL. */
const char *mpi_relay_frame(const struct mpi_relay_ends *ends, uint8_t type, const void *message);
