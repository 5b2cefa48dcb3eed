/* SPDX-License-Identifier: Apache-2.0 */
/* Carries out the decisions of the elastic core, one action at a time. If an action has an
 * immediate result, that comes back as an event, behind the events that already wait. */
#pragma once

#include "driver/elastic/parts.h"

void elastic_act(const struct elastic_parts *parts, const struct elastic_action *action);

/* Terminates one worker: at once, or with SIGTERM and a grace period. */
void elastic_act_kill(struct job *job, int seat, int64_t grace_ms);

/* The agent of a node has exited. Calls the node again if the core has asked for that meanwhile. */
void elastic_act_node_gone(const struct elastic_parts *parts, struct node_link *node);
