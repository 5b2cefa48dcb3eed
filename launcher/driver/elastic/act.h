/* SPDX-License-Identifier: Apache-2.0 */
/* Carries out what the core of an elastic job has decided, one action at a time. What an action
 * brings about at once comes back as an event, behind those that wait already. */
#pragma once

#include "driver/elastic/parts.h"

void elastic_act(const struct elastic_parts *parts, const struct elastic_action *action);

/* Ends one worker: at once, or with TERM and a grace before. */
void elastic_act_kill(struct job *job, int seat, int64_t grace_ms);

/* The agent of a node has ended: the node is called if that was wanted meanwhile. */
void elastic_act_node_gone(const struct elastic_parts *parts, struct node_link *node);
