/* SPDX-License-Identifier: Apache-2.0 */
/* What agents report about their workers: started, exited, finished, aborted, being killed. */
#pragma once

#include "driver/job/job.h"

/* Each takes the body of a frame. -1: it cannot be right (unreadable, or about a worker of another
 * node), and the node is to be given up. */
int exits_started(struct job *job, struct node_link *node, const uint8_t *body, size_t length);
int exits_exited(struct job *job, struct node_link *node, const uint8_t *body, size_t length);
int exits_finished(struct job *job, struct node_link *node, const uint8_t *body, size_t length);
int exits_aborted(struct job *job, struct node_link *node, const uint8_t *body, size_t length);
int exits_killing(struct job *job, struct node_link *node, const uint8_t *body, size_t length);

/* Is a frame of this type about workers, of a static job's node whose workers have not been told to
 * start, or to end? In an elastic job each of them is looked at by its seat. */
bool exits_is_early(const struct job *job, const struct node_link *node, uint8_t type);

/* Does the worker of this seat run on this node? */
bool exits_seat_of(const struct job *job, const struct node_link *node, uint32_t seat);
