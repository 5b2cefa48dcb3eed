/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes of a job: added, ordered by the plan, opened, asked and sent to together. */
#pragma once

#include "driver/job/job.h"

/* A node without a link yet, CALLING. `host` is copied. */
struct node_link *job_add_node(struct job *job, const char *host);

/* The nodes and ranks of a static job, once. */
void job_take_plan(struct job *job);

/* In a static job every rank has the seat of its number. */
void job_seat_ranks(struct job *job);

/* Takes the nodes' order in the present plan; -1: they have none. */
void job_set_places(struct job *job, struct node_link *const *places);

/* Milliseconds of silence after which a node is lost. */
int64_t job_node_timeout(const struct job *job);

/* Is it so with all nodes? As long as it is not so with the one that was found last, no other is
 * looked at: a frame of each of thousands of nodes must not cost a look at all of them. */
bool job_all_nodes(struct job *job, bool (*is_so)(const struct node_link *node));

/* To all nodes that can still be sent to. */
void job_send_all(struct job *job, enum frame_type type, const ProtobufCMessage *message);

/* Connects an opened node to the agent that was forked for it (request->streams), if one was. */
int job_connect_node(struct job *job, struct node_link *node, struct error *err);

/* The link of a new or renewed node gets its limits and its way up. */
void job_open_node(struct job *job, struct node_link *node);
