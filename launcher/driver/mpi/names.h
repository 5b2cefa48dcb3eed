/* SPDX-License-Identifier: Apache-2.0 */
/* What MPI ranks on several nodes publish for each other: the store, fed with MPI_STORE frames. */
#pragma once

#include "driver/job/job.h"

struct mpi_names;

struct mpi_names *mpi_names_create(struct job *job);
void mpi_names_destroy(struct mpi_names *names); /* accepts NULL */

/* -1: the request is wrong. `epoch`: of the rank that asks. */
int mpi_names_request(struct mpi_names *names, const struct node_link *node, uint32_t epoch,
                      Hvdrun__MpiStore *message);
/* The node was lost: forgets what its ranks published for their lifetime, and their waiting
 * lookups. */
void mpi_names_node_lost(struct mpi_names *names, int node);
