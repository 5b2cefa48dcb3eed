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
 * The nodes that wait for a direct modex are in asks.h. If the node that was asked is lost before
 * it answers, the driver refuses what they wait for.
 */
#pragma once

#include "driver/job/job.h"

struct job_mpi;

/* The job gets more ranks: job->plan will be this one, which begins with the present one. */
void job_mpi_grow(struct job_mpi *part, const struct plan *plan);

/* All ranks of the epoch have ended. Call it before the plan is freed. */
void job_mpi_end_epoch(struct job_mpi *part);
