/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the driver sends down the tree. Of the frames of one turn of the loop, those whose bodies
 * end alike leave as one, for each agent that the driver reaches itself. The sender keeps
 * what agents have not confirmed.
 */
#pragma once

#include "driver/job/job.h"
#include "features/tree/routes.h"
#include "io/send_queue.h"

struct tree_sender;

/* The job's places and the routes live longer. `patience`: in ticks. `late`: what was sent to this
 * place is; it may give up ways. */
struct tree_sender *tree_sender_create(struct job *job, const struct tree_routes *routes,
                                       int64_t patience, void (*late)(void *context, int place),
                                       void *context);
void tree_sender_destroy(struct tree_sender *sender); /* accepts NULL */

/* A message that ends with this field, whose value is the block. `direct`: on the link of this
 * place, at once. */
void tree_sender_send(struct tree_sender *sender, int place, bool direct, enum frame_type type,
                      uint32_t epoch, const ProtobufCMessage *message, unsigned field,
                      struct shared_block *block);
/* What this place has not confirmed, on its own link: it has waited for long. */
void tree_sender_again(struct tree_sender *sender, int place);
/* -1: it was never sent. */
int tree_sender_confirm(struct tree_sender *sender, int place, uint64_t serial);
void tree_sender_forget(struct tree_sender *sender, int place); /* its agent is lost */
/* Its agent was silent, and answers again: what it got in that time is not late yet. */
void tree_sender_heard(struct tree_sender *sender, int place);
bool tree_sender_owes(const struct tree_sender *sender, int place); /* is any not confirmed? */
bool tree_sender_is_late(const struct tree_sender *sender, int place);

/* Bytes of blocks that leave at the end of the loop's turn, perhaps all on the same link. */
size_t tree_sender_waiting(const struct tree_sender *sender);
int64_t tree_sender_passed(const struct tree_sender *sender); /* frames sent through others */
int64_t tree_sender_repeated(const struct tree_sender *sender);
