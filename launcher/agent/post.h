/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of an agent use to send to the driver: the link, the epoch, and the log. The agent
 * has one. Each crew has one of its own, which uses the same link under the epoch of the crew.
 */
#pragma once

#include "base/log.h"
#include "io/link.h"

struct post {
    struct link *link;        /* the agent's; NULL: the driver is lost */
    const struct post *whole; /* of a crew: the agent's, which lives longer; else NULL */
    uint32_t epoch;           /* in the headers of what is sent */
    struct log log;           /* becomes LOG frames */
};

void post_init(struct post *post, struct link *link);
void post_init_part(struct post *post, const struct post *whole, uint32_t epoch);

struct link *post_link(const struct post *post); /* NULL: the driver is lost */
void post_message(const struct post *post, enum frame_type type, const ProtobufCMessage *message);
/* As link_send_pieces(), with a copy of the bytes. */
void post_pieces(const struct post *post, enum frame_type type, const ProtobufCMessage *message,
                 unsigned field, const void *bytes, size_t length);
/* As link_takes(). */
bool post_takes(const struct post *post, size_t length);
void post_empty(const struct post *post, enum frame_type type);

/* A question of the driver (ASK), for its answer (ANSWER). Whoever answers later keeps a copy. Once
 * the link has ended, answers go nowhere; the driver drops those that it does not wait for any
 * more. */
struct asked {
    const struct post *post; /* lives as long as the agent */
    uint32_t number;
};

void asked_answer(const struct asked *asked, const ProtobufCMessage *answer);
/* `more`: it is a piece of the answer, and another one follows. */
void asked_piece(const struct asked *asked, const ProtobufCMessage *piece, bool more);
