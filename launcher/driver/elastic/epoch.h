/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The start of an epoch: PREPARE to the agents that get new workers, READY from them, START.
 *
 *   IDLE       prepare()                        WANTED
 *   WANTED     every agent concerned is idle    SENT     (PREPARE sent)
 *   SENT       every agent concerned is READY   READY    (the core gets an event)
 *   READY      start()                          IDLE
 *   any        cancel()                         IDLE
 * An agent is idle when it has ended all workers of the epoch before. If the workers rejoin, it is
 * always idle.
 */
#pragma once

#include "driver/elastic/hub.h"
#include "driver/job/agent_frame.h"

struct elastic_epoch;

struct elastic_epoch *elastic_epoch_create(struct elastic_hub *hub);
void elastic_epoch_destroy(struct elastic_epoch *epoch); /* accepts NULL */

void elastic_epoch_prepare(struct elastic_epoch *epoch, const struct elastic_plan *plan);
void elastic_epoch_advance(struct elastic_epoch *epoch); /* an agent has become idle or is gone */
void elastic_epoch_cancel(struct elastic_epoch *epoch);
void elastic_epoch_start(struct elastic_epoch *epoch, const struct elastic_plan *plan);

/* READY of this epoch, or of an earlier one that was cancelled meanwhile, whose problem is still
 * worth knowing. -1: the node broke the protocol. */
int elastic_epoch_ready(struct elastic_epoch *epoch, struct node_link *node,
                        const struct agent_frame *frame);
