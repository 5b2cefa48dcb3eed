/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bring-up of a static job: HELLO from every agent, PREPARE to all, READY from all, START to
 * all. All steps together may take at most --start-timeout; after that a message names the hosts
 * that have not answered.
 *
 * A host that cannot be reached does not end the job at once. The other hosts get a few more
 * seconds to come up or to fail too. So the user learns about all bad hosts at once.
 */
#pragma once

#include "driver/job/agent_frame.h"
#include "driver/job/job.h"

struct bringup;

struct bringup *bringup_create(struct job *job);
void bringup_destroy(struct bringup *bringup); /* accepts NULL */

void bringup_begin(struct bringup *bringup);
void bringup_pause(struct bringup *bringup, bool paused);
void bringup_stop(struct bringup *bringup); /* the end has begun */

void bringup_hello(struct bringup *bringup, struct node_link *node);
void bringup_came(struct bringup *bringup); /* the job may use a node that has said HELLO */
void bringup_unreached(struct bringup *bringup);
/* READY. */
int bringup_ready(struct job *job, struct node_link *node, const struct agent_frame *frame);

/* All agents are up: sends PREPARE. */
void bringup_prepare(struct bringup *bringup);
/* All agents are ready: sends START. */
void bringup_start(struct bringup *bringup);
