/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages between driver and agent before workers run, the same in every kind of job: HELLO
 * and WELCOME, the facts in READY, START.
 */
#pragma once

#include "driver/job/job.h"

/* The agent is of another version, or complains in its HELLO: one line, which the caller frees.
 * NULL: neither. */
char *handshake_version_problem(const struct node_link *node);
char *handshake_problem(const struct node_link *node); /* either */

/* Answers HELLO with WELCOME, which includes the part of the kind of job, and with the first
 * output credit. */
void handshake_welcome(struct job *job, struct node_link *node);

void handshake_forget_ports(struct job *job); /* that agents have chosen */

/* Takes the addresses and the ports that nodes have chosen for all, for torch's store too. Prints
 * what the user asked for. */
void handshake_take_ready(struct job *job, const struct node_link *node,
                          const Hvdrun__Ready *ready);

/* Sends START to the workers of this epoch; the node is RUNNING. */
void handshake_send_start(const struct job *job, struct node_link *node, uint32_t epoch);

/* START was sent to all nodes for the first time: the job is RUNNING, and its time limit begins. */
void handshake_running(struct job *job);
