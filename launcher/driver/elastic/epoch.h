/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The epochs of the job: the next one, from its plan to its start, and the newcomers that start
 * beside the running one (model/elastic/newcomers.h). Each has a launch.
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

void elastic_epoch_prepare_newcomers(struct elastic_epoch *epoch, const struct elastic_plan *plan);
void elastic_epoch_cancel_newcomers(struct elastic_epoch *epoch);
void elastic_epoch_start_newcomers(struct elastic_epoch *epoch, const struct elastic_plan *plan);

/* READY of one of the two, or of an earlier one that was cancelled meanwhile, whose problem is
 * still worth knowing. -1: the node broke the protocol. */
int elastic_epoch_ready(struct elastic_epoch *epoch, struct node_link *node,
                        const struct agent_frame *frame);
