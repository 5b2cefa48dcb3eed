/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The start of the new workers of a plan: PREPARE to the agents that get some, READY from them,
 * START.
 *
 *   IDLE       take()                           WANTED
 *   WANTED     every agent concerned is idle    SENT     (PREPARE sent)
 *   SENT       every agent concerned is READY   READY
 *   READY      start()                          IDLE
 *   any        cancel()                         IDLE
 * An agent is idle when it has ended all workers of the epoch before. If workers of other epochs
 * go on beside the new ones, it is always idle.
 */
#pragma once

#include "driver/job/job.h"
#include "driver/start/prepare_epoch.h"

enum elastic_launch_stage { LAUNCH_IDLE, LAUNCH_WANTED, LAUNCH_SENT, LAUNCH_READY };

struct elastic_launch {
    enum elastic_launch_stage stage;
    struct plan
        *plan; /* as the rest of the driver knows plans; nodes without workers have no place */
    struct node_link **places;
    struct elastic_member *members;
    bool *ready; /* by place */
    struct prepare_epoch prepare;
};

void elastic_launch_destroy(struct elastic_launch *launch); /* what is in it */

/* Forgets the plan that it had, which nothing may borrow any more. */
void elastic_launch_take(struct elastic_launch *launch, const struct job *job,
                         const struct elastic_plan *from);
/* Sends PREPARE if the launch is WANTED and every agent concerned is idle. True: now, every agent
 * is READY. */
bool elastic_launch_advance(struct elastic_launch *launch, struct job *job);
/* The agent is READY. True: now, every one is. */
bool elastic_launch_node_ready(struct elastic_launch *launch, const struct node_link *node);
void elastic_launch_cancel(struct elastic_launch *launch);
void elastic_launch_start(struct elastic_launch *launch, const struct job *job);
