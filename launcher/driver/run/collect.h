/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output frames into the output room, and credit back to the agents (D4). The credit belongs to the
 * agent from which the bytes came, although their seat may be somebody else's, on another node, by
 * the time they have been written.
 */
#pragma once

#include "driver/job/job.h"

struct collect;

struct collect *collect_create(struct job *job);
void collect_destroy(struct collect *collect); /* accepts NULL */

int collect_bytes(struct collect *collect, struct node_link *node, const uint8_t *body,
                  size_t length);
int collect_show(struct collect *collect, struct node_link *node, const uint8_t *body,
                 size_t length);

/* For output_ops.consumed. */
void collect_consumed(struct collect *collect, int seat, size_t bytes);
