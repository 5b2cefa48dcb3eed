/* SPDX-License-Identifier: Apache-2.0 */
/* The reports of agents about their workers: started, exited, finished, aborted, being killed. */
#pragma once

#include "driver/job/agent_frame.h"
#include "driver/job/job.h"

/* Each handles one type of frame. -1: the frame is wrong (it cannot be decoded, or is about a
 * worker of another node), and the caller gives the node up. */
int exits_started(struct job *job, struct node_link *node, const struct agent_frame *frame);
int exits_exited(struct job *job, struct node_link *node, const struct agent_frame *frame);
int exits_finished(struct job *job, struct node_link *node, const struct agent_frame *frame);
int exits_aborted(struct job *job, struct node_link *node, const struct agent_frame *frame);
int exits_killing(struct job *job, struct node_link *node, const struct agent_frame *frame);
/* ENDED: no worker of the epoch remains on the node. */
int exits_ended(struct job *job, struct node_link *node, const struct agent_frame *frame);

/* Whether the worker on this seat runs on this node. */
bool exits_seat_of(const struct job *job, const struct node_link *node, uint32_t seat);
