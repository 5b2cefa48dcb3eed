/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks agents about a topic (ASK), and gathers their answers (ANSWER). A question is over when all
 * agents that were asked have answered, or are lost, or its limit has passed. An answer that comes
 * later, again, or from an agent that was not asked is dropped. One that cannot be read, or has
 * more pieces or bytes than its topic allows, is a breach of the protocol.
 *
 * Whoever asks about a topic that is not TOPIC_ANEW (wire/topic.h) shares the question that is
 * under way, if it is the same one.
 */
#pragma once

#include "base/buf.h"
#include "driver/job/job.h"
#include "wire/topic.h"

struct question { /* a constant: how the driver asks about a topic */
    const struct topic *topic;
    /* Takes an answer, or a piece of one, as it comes; may be NULL. It may keep the message: then
     * it sets *answer to NULL, and calls message_free() later. -1: the agent broke the protocol. */
    int (*take)(struct job *job, struct node_link *node, ProtobufCMessage **answer);
    bool keep; /* whole answers, until the question is over */
};

struct ask_answer {
    struct node_link *node;
    enum { ASK_OWES, ASK_ANSWERED, ASK_LOST } state; /* OWES: all of it, or the rest */
    int pieces;                                      /* that have come */
    size_t bytes;                                    /* in these */
    ProtobufCMessage *message;                       /* NULL: it has not come, or is not kept */
};

struct ask { /* a question that is under way */
    struct job *job;
    struct ask_answer *answers; /* of all nodes that were asked, in that order */
    size_t count;

    /* Only job/ask.c uses the rest. */
    size_t owing;
    struct ask *next;
    const struct question *question;
    uint32_t number;
    bool over;                   /* the askers are being called */
    ProtobufCBinaryData request; /* to all nodes */
    struct asker *askers;
    size_t asker_count;
    struct loop_timer *timer;
    int64_t limit_ms;
};

/* The question is over, and freed when this returns. It may ask, and forget. */
typedef void ask_done(void *context, const struct ask *ask);

/* Asks all agents that can answer. `request` and `done` may be NULL. `done` comes once, from the
 * loop or a frame. The same one with the same context waits only once. false: the last answers are
 * still fresh, and `done` does not come. */
bool ask_all(struct job *job, const struct question *question, const ProtobufCMessage *request,
             int64_t limit_ms, ask_done *done, void *context);

/* Asks one agent after the other, each what it is to be asked, and none that cannot answer. If none
 * is asked, `done` comes from the loop. The limit counts from the last one that was asked. */
struct ask *ask_begin(struct job *job, const struct question *question, int64_t limit_ms,
                      ask_done *done, void *context);
void ask_node(struct ask *ask, struct node_link *node, const ProtobufCMessage *request);

/* Whoever waits with this context is not called. A question that is not shared is over when the
 * last of its callers is forgotten. */
void ask_forget(struct job *job, const void *context);

bool ask_is_open(const struct job *job, const struct topic *topic); /* a question is under way */
/* A node has sent a piece of its answer, and owes the rest. */
bool ask_has_begun(const struct job *job, const struct topic *topic);
int64_t ask_age_ms(const struct job *job, const struct topic *topic); /* -1: never asked */
/* Hosts that have not answered, as "c17, c18"; empty: none. */
void ask_missing(const struct ask *ask, struct buf *out);
