/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the driver sends down the tree: makes parcels of frames, and puts what the outbox sends on
 * the links of the nodes, at the end of the loop's turn.
 */
#pragma once

#include "driver/job/job.h"
#include "features/tree/outbox.h"
#include "io/send_queue.h"

struct tree_sender;

/* The job's places and the routes live longer. `limit` and `late`: see outbox.h. */
struct tree_sender *tree_sender_create(struct job *job, const struct tree_routes *routes,
                                       int64_t limit, void (*late)(void *context, int place),
                                       void *context);
void tree_sender_destroy(struct tree_sender *sender); /* accepts NULL */
struct outbox *tree_sender_outbox(const struct tree_sender *sender);

/* A message that ends with this field, whose value is the block. `own_link`: by no other way. */
void tree_sender_send(struct tree_sender *sender, int place, bool own_link, enum frame_type type,
                      uint32_t epoch, const ProtobufCMessage *message, unsigned field,
                      struct shared_block *block);
