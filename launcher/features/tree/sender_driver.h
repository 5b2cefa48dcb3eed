/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the driver sends down the tree: makes parcels of frames, and puts what the outbox sends on
 * the links of the nodes, at the end of the loop's turn.
 */
#pragma once

#include "driver/job/job.h"
#include "features/tree/outbox.h"
#include "io/send_queue.h"

struct tree_sender { /* all zero: not open */
    struct job *job;
    struct outbox *outbox;
    void (*late)(void *context, int place); /* see outbox.h */
    void *context;
    struct loop_timer *flush, *tick;
};

/* With job, late and context set. The job's places and the routes live longer. `limit`: see
 * outbox.h. */
void tree_sender_open(struct tree_sender *sender, const struct tree_routes *routes, int64_t limit);
void tree_sender_close(struct tree_sender *sender);

/* A message that ends with this field, whose value is the block. `own_link`: by no other way. */
void tree_sender_send(const struct tree_sender *sender, int place, bool own_link,
                      enum frame_type type, uint32_t epoch, const ProtobufCMessage *message,
                      unsigned field, struct shared_block *block);
