/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All frames that an agent may send, and their handlers. Frames of the link itself (heartbeats,
 * LOG) never come here; job/node_link.c handles them.
 */
#pragma once

#include "driver/job/job.h"

/* -1: the node broke the protocol. */
int frames_take(struct job *job, struct node_link *node, const struct frame_header *header,
                const uint8_t *body);
