/* SPDX-License-Identifier: Apache-2.0 */
/* Questions of the driver (ASK), and answers to them (ANSWER). */
#pragma once

#include "agent/post.h"
#include "wire/control.pb-c.h"
#include "wire/topic.h"

struct agent;

/* A question. Whoever answers later keeps a copy. Once the link has ended, answers go nowhere; the
 * driver drops those that it does not wait for any more. */
struct asked {
    const struct post *post; /* lives as long as the agent */
    uint32_t number;
};

void asked_answer(const struct asked *asked, const ProtobufCMessage *answer);
/* `more`: it is a piece of the answer, and another one follows. */
void asked_piece(const struct asked *asked, const ProtobufCMessage *piece, bool more);

/* Makes the answer about a topic, at once or later. The request is borrowed for the call. */
struct ask_rule {
    const struct topic *topic;
    void (*answer)(struct agent *agent, const struct asked *asked, const ProtobufCMessage *request);
};

/* The one for the topic of an ASK; NULL: none is. The rules end with one without a topic. */
const struct ask_rule *asked_rule(const struct ask_rule *rules, const Hvdrun__Ask *message);
/* NULL, or how the ASK breaks the protocol. */
const char *asked_take(const struct ask_rule *rule, struct agent *agent, const struct post *post,
                       const Hvdrun__Ask *message);
