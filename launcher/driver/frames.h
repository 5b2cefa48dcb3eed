/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every frame that an agent may send, and who takes it. What the link itself lives on (heartbeats,
 * LOG) never comes here; job/node_link.c takes it.
 */
#pragma once

#include "driver/job/job.h"

/* -1: the node broke the protocol. */
int frames_take(struct job *job, struct node_link *node, const struct frame_header *header,
                const uint8_t *body);
