/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes of a job: adds them, orders them by the plan, opens them, and sends to all of them. */
#pragma once

#include "driver/job/job.h"

/* Adds a node without a link, in state CALLING. `host` is copied. */
struct node_link *job_add_node(struct job *job, const char *host);

/* The nodes and ranks of a static job, once. */
void job_take_plan(struct job *job);

/* In a static job every rank has the seat of its number, and there are no other seats. */
void job_seat_ranks(struct job *job);

/* Takes the nodes' order in the present plan; -1: they have none. */
void job_set_places(struct job *job, struct node_link *const *places);

/* The slots of a place: at least its ranks may be there. A host that the user did not name lends
 * all its CPUs to ranks that are spawned. */
int job_node_slots(const struct job *job, int place);

/* Milliseconds of silence after which a node is lost. */
int64_t job_node_timeout(const struct job *job);

/* Whether `is_so` holds for all nodes. The check starts at the node that failed it last. So a frame
 * from each of thousands of nodes does not cost a look at all of them. */
bool job_all_nodes(struct job *job, bool (*is_so)(const struct node_link *node));

/* Sends to all nodes that are still connected. */
void job_send_all(struct job *job, enum frame_type type, const ProtobufCMessage *message);

/* Connects an opened node to the agent that was forked for it (request->streams), if one was. */
int job_connect_node(struct job *job, struct node_link *node, struct error *err);

/* Initialises the link of a new or renewed node. */
void job_open_node(struct job *job, struct node_link *node);

/* A child of ours has exited; it may be the agent of a node, or the program that reaches it. */
void job_agent_exited(struct job *job, const struct reaper_exit *exit);

void job_free_nodes(struct job *job);

/*
 * Hands a frame from an agent to the part of the job, or to the kind of job, that takes frames of
 * its type. Frames of the link itself (heartbeats, LOG) never come here; node_link.c handles them.
 * -1: the node broke the protocol.
 */
int frames_take(struct job *job, struct node_link *node, const struct frame_header *header,
                const uint8_t *body);
