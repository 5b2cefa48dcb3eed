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
 * The driver keeps no state about a direct modex: the request names the node that asked. If the
 * node that was asked is lost before it answers, the request ends with the epoch.
 */
#pragma once

#include "driver/job/agent_frame.h"
#include "driver/job/job.h"

struct job_mpi;

struct job_mpi *job_mpi_create(struct job *job);
/* All ranks of the epoch have ended. Call it before the plan is freed. */
void job_mpi_end_epoch(struct job_mpi *part);
void job_mpi_destroy(struct job_mpi *part); /* accepts NULL */

/* The frames of MPI, from a node in the plan. -1: the node broke the protocol. */
int job_mpi_collect(struct job *job, struct node_link *node, const struct agent_frame *frame);
int job_mpi_modex(struct job *job, struct node_link *node, const struct agent_frame *frame);
int job_mpi_modex_data(struct job *job, struct node_link *node, const struct agent_frame *frame);
int job_mpi_store(struct job *job, struct node_link *node, const struct agent_frame *frame);
int job_mpi_event(struct job *job, struct node_link *node, const struct agent_frame *frame);
int job_mpi_signal(struct job *job, struct node_link *node, const struct agent_frame *frame);

void job_mpi_node_lost(struct job_mpi *part, const struct node_link *node);
