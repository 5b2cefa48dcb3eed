/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nodes that wait for the data of a rank (direct modex). Pure.
 *
 * A rank's node is asked one question about it at a time. Nodes that ask meanwhile wait for the
 * next question, as the answer to the present one may be older than what they want to know. So
 * their answer comes to the driver once, however many they are.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"

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
