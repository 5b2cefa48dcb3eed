/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bring-up: HELLO from every agent, then PREPARE to all, READY from all, START to all. No step
 * waits longer than --start-timeout in all; the message on time-out names the hosts that were
 * waited for.
 */
#pragma once

#include "driver/job/job.h"

void bringup_begin(struct job *job);
void bringup_hello(struct job *job, struct node_link *node);
void bringup_ready(struct job *job, struct node_link *node, const uint8_t *body, size_t length);
void bringup_advance(struct job *job); /* all up: prepare; all ready: start */

/* Steps that elastic jobs have in common with static ones. */
char *bringup_version_problem(const struct node_link *node); /* the caller's; NULL: none */
void bringup_welcome(struct job *job, struct node_link *node);
void bringup_take_ready(struct job *job, const struct node_link *node, const Hvdrun__Ready *ready);
void bringup_send_start(const struct job *job, struct node_link *node);
