/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hands a frame from an agent to the part of the job, or to the kind of job, that takes frames of
 * its type. Frames of the link itself (heartbeats, LOG) never come here; node_link.c handles them.
 */
#pragma once

#include "driver/job/job.h"

/* -1: the node broke the protocol. */
int frames_take(struct job *job, struct node_link *node, const struct frame_header *header,
                const uint8_t *body);
