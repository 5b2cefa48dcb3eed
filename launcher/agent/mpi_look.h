/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks at the workers of an epoch for MPI that cannot work: 1, 5 and 20 seconds after their start.
 *
 * A wrong kind of MPI fails silently: every process becomes a world of one. So there is a warning
 * if a process has an MPI library mapped and its rank never spoke to its server. It names the right
 * --mpi. A process that another launcher started gets no warning. Another warning is about a rank
 * that has exited without MPI_Finalize while others may wait for it: a second later, too. There is
 * one warning of each kind in an epoch.
 */
#pragma once

#include "agent/mpi_job.h"
#include "io/loop.h"

struct mpi_look;

/* `has_spoken`: has the worker with this index in PREPARE ever spoken to the server it was given?
 */
struct mpi_look *mpi_look_create(struct loop *loop,
                                 bool (*has_spoken)(const void *context, int index),
                                 const void *context);
void mpi_look_destroy(struct mpi_look *look); /* accepts NULL */

/* `nspace`: of our PMIx server; NULL: there is none. Both are borrowed until mpi_look_end(). */
void mpi_look_begin(struct mpi_look *look, const struct mpi_job *job, const char *nspace);
void mpi_look_end(struct mpi_look *look); /* also when it never began */

/* This worker exited with 0, but without MPI_Finalize. */
void mpi_look_left(struct mpi_look *look, int index);
