/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hosts MPI for the workers of this node: PMIx through its module, PMI-1 by our own engine on a
 * socketpair per worker. Messages from and to other nodes go through the driver (mpi.h). One
 * host lives as long as its agent, since PMIx can be started only once in a process. A *world* is
 * what MPI knows of one crew, and there are several if ranks spawn others.
 */
#pragma once

#include "agent/mpi.h"

struct mpi_host;

/* `post` is the agent's. */
struct mpi_host *mpi_host_create(struct loop *loop, const struct post *post);

/* Does not finalize PMIx: that can hang when a client died while it connected (4.2.2), and
 * the process ends anyway. All worlds are destroyed before. */
void mpi_host_destroy(struct mpi_host *host);

/* The process is about to end: mpi_world_destroy() will no longer wait for PMIx. */
void mpi_host_abandon(struct mpi_host *host);

/* PMIx's thread runs: the process must end without running exit handlers. */
bool mpi_host_has_thread(const struct mpi_host *host);

/* For `hvdrun check`: does what a job of one rank would need of PMIx here, without a rank. Only
 * while there is no world. */
int mpi_host_try_pmix(struct mpi_host *host, const char *module_path, const char *hostname,
                      struct error *err);

/* Starts the servers that these kinds need. NULL: with an errnum, this machine refused a folder or
 * space. For what its workers do, see mpi.h. */
struct mpi_world *mpi_world_create(struct mpi_host *host, const struct mpi_job *job,
                                   struct error *err);
void mpi_world_destroy(struct mpi_world *world); /* accepts NULL */
