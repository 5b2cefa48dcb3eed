/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's half of MPI across nodes. It handles:
 *
 * - the steps that all nodes take together (rounds.h),
 * - a direct modex, from node to node and back,
 * - events for the other nodes, and signals that workers send each other,
 * - the store of what the workers publish.
 *
 * A job on one node needs none of this: its agent does everything.
 *
 * The nodes that wait for a direct modex are in asks.c. If the node that was asked is lost before
 * it answers, the driver refuses what they wait for.
 */
#pragma once

#include "base/map.h"
#include "driver/job/job.h"

/* job_mpi.c composes the others. */

/* The job gets more ranks: job->plan will be this one, which begins with the present one. */
void job_mpi_grow(struct job *job, const struct plan *plan);

/* All ranks of the epoch have ended. Call it before the plan is freed. */
void job_mpi_end_epoch(struct job *job);

/* names.c: what MPI ranks on several nodes publish for each other: the store, fed with MPI_STORE
 * frames. */

struct mpi_names;

struct mpi_names *mpi_names_create(struct job *job);
void mpi_names_destroy(struct mpi_names *names); /* accepts NULL */

/* -1: the request is wrong. `epoch`: of the rank that asks. */
int mpi_names_request(struct mpi_names *names, const struct node_link *node, uint32_t epoch,
                      Hvdrun__MpiStore *message);
/* The node was lost: forgets what its ranks published for their lifetime, and their waiting
 * lookups. */
void mpi_names_node_lost(struct mpi_names *names, int node);

/*
 * asks.c: the nodes that wait for the data of a rank (direct modex). Pure.
 *
 * A rank's node is asked one question about it at a time. Nodes that ask meanwhile wait for the
 * next question, as the answer to the present one may be older than what they want to know. So
 * their answer comes to the driver once, however many they are.
 */

struct mpi_asker {
    int node; /* its place in the plan */
    uint32_t epoch;
    uint64_t token; /* of its own */
};

struct mpi_asks {
    struct map by_rank; /* struct ask */
    size_t waiting;     /* askers */
    uint32_t last;      /* serial number of questions, also across epochs */
};

void mpi_asks_clear(struct mpi_asks *asks); /* answers nobody */

/* Far more wait than ranks can: no more are added. */
bool mpi_asks_full(const struct mpi_asks *asks);
/* Returns the token of the question to send to the node `owner`; 0: one is under way. */
uint64_t mpi_asks_add(struct mpi_asks *asks, uint32_t rank, int owner,
                      const struct mpi_asker *asker);

struct mpi_asked {
    struct mpi_asker *askers; /* the caller frees them; NULL: nobody waits for this answer */
    size_t count;
    uint32_t rank;
    uint64_t next; /* token of the question to send now; 0: none */
};
/* The node has answered the question with this token. */
struct mpi_asked mpi_asks_answered(struct mpi_asks *asks, int node, uint64_t token);

/* Its ranks will answer nothing, for which `refuse` is called, and it waits for nothing. */
void mpi_asks_node_lost(struct mpi_asks *asks, int node,
                        void (*refuse)(void *context, const struct mpi_asker *asker),
                        void *context);
