/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the driver and an agent say to each other before workers run, alike in every kind of job:
 * HELLO and WELCOME, what READY tells about the node, START.
 */
#pragma once

#include "driver/job/job.h"

/* The agent is of another version, or complains in its HELLO: one line, which the caller frees.
 * NULL: neither. */
char *handshake_version_problem(const struct node_link *node);
char *handshake_problem(const struct node_link *node); /* either */

/* Answers HELLO: WELCOME, with the part of the job's kind, and the first output credit. */
void handshake_welcome(struct job *job, struct node_link *node);

/* Takes the address and ports that the first worker's node has chosen, and prints what the user
 * asked to see. */
void handshake_take_ready(struct job *job, const struct node_link *node,
                          const Hvdrun__Ready *ready);

/* The node is RUNNING. */
void handshake_send_start(const struct job *job, struct node_link *node);

/* START was sent to all nodes for the first time: the job is RUNNING, and its time limit begins. */
void handshake_running(struct job *job);
