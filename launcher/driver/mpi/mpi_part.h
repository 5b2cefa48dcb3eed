/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's half of MPI across nodes: the steps that all nodes take together (mpi_rounds.h), the
 * way of a direct modex from node to node and back, events for the other nodes, signals that
 * workers want for each other, and the store of what they publish. Jobs of one node need none of
 * it: their agent does everything.
 *
 * Of a direct modex nothing is kept: it names the node that asked. When the node that was asked is
 * lost before it answers, the question ends with the epoch.
 */
#pragma once

#include "driver/job/agent_frame.h"
#include "driver/job/job.h"

struct mpi_part;

struct mpi_part *mpi_part_create(struct job *job);
/* The ranks of the job's epoch have all ended; before its plan goes. */
void mpi_part_end_epoch(struct mpi_part *part);
void mpi_part_destroy(struct mpi_part *part); /* accepts NULL */

/* The frames of MPI, from a node that is in the plan. -1: the node broke the protocol. */
int mpi_part_collect(struct job *job, struct node_link *node, const struct agent_frame *frame);
int mpi_part_modex(struct job *job, struct node_link *node, const struct agent_frame *frame);
int mpi_part_modex_data(struct job *job, struct node_link *node, const struct agent_frame *frame);
int mpi_part_store(struct job *job, struct node_link *node, const struct agent_frame *frame);
int mpi_part_event(struct job *job, struct node_link *node, const struct agent_frame *frame);
int mpi_part_signal(struct job *job, struct node_link *node, const struct agent_frame *frame);

void mpi_part_node_lost(struct mpi_part *part, const struct node_link *node);
