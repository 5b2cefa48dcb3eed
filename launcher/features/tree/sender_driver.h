/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the driver sends down the tree. Of the frames of one turn of the loop, those whose bodies
 * end alike leave as one, for each agent that the driver reaches itself. The sender keeps
 * what agents have not confirmed (parcels.h), and what a link does not take yet.
 */
#pragma once

#include "driver/job/job.h"
#include "features/tree/routes.h"
#include "io/send_queue.h"

struct tree_sender;

/* The job's places and the routes live longer. `limit`: ticks after which anything is late. `late`:
 * what was sent to this place is; it may give up ways. */
struct tree_sender *tree_sender_create(struct job *job, const struct tree_routes *routes,
                                       int64_t limit, void (*late)(void *context, int place),
                                       void *context);
void tree_sender_destroy(struct tree_sender *sender); /* accepts NULL */

/* A message that ends with this field, whose value is the block. `own_link`: by no other way. */
void tree_sender_send(struct tree_sender *sender, int place, bool own_link, enum frame_type type,
                      uint32_t epoch, const ProtobufCMessage *message, unsigned field,
                      struct shared_block *block);
/* The way to this place is given up. */
void tree_sender_return(struct tree_sender *sender, int place);
/* -1: it was never sent. */
int tree_sender_confirm(struct tree_sender *sender, int place, uint64_t serial);
void tree_sender_forget(struct tree_sender *sender, int place); /* its agent is lost */
/* Its agent was silent, and answers again: what it got in that time is not late yet. */
void tree_sender_heard(struct tree_sender *sender, int place);
bool tree_sender_owes(const struct tree_sender *sender, int place); /* is any not confirmed? */
bool tree_sender_is_late(const struct tree_sender *sender, int place);

int64_t tree_sender_passed(const struct tree_sender *sender); /* frames sent through others */
int64_t tree_sender_repeated(const struct tree_sender *sender);
