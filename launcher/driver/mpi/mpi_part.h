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

struct mpi_part;

struct mpi_part *mpi_part_create(struct job *job);
/* All ranks of the epoch have ended. Call it before the plan is freed. */
void mpi_part_end_epoch(struct mpi_part *part);
void mpi_part_destroy(struct mpi_part *part); /* accepts NULL */

/* The frames of MPI, from a node in the plan. -1: the node broke the protocol. */
int mpi_part_collect(struct job *job, struct node_link *node, const struct agent_frame *frame);
int mpi_part_modex(struct job *job, struct node_link *node, const struct agent_frame *frame);
int mpi_part_modex_data(struct job *job, struct node_link *node, const struct agent_frame *frame);
int mpi_part_store(struct job *job, struct node_link *node, const struct agent_frame *frame);
int mpi_part_event(struct job *job, struct node_link *node, const struct agent_frame *frame);
int mpi_part_signal(struct job *job, struct node_link *node, const struct agent_frame *frame);

void mpi_part_node_lost(struct mpi_part *part, const struct node_link *node);
