/* SPDX-License-Identifier: Apache-2.0 */
/* A frame from an agent, and the rule for its type: its handler, and when it may come. */
#pragma once

#include "driver/job/node_link.h"

struct job;

struct agent_frame {
    uint8_t type;
    uint32_t epoch; /* 0: the frame does not belong to an epoch */
    const uint8_t *body;
    size_t length;
    void *message; /* the body, if its rule names a message; freed after the call */
};

/* The epochs from which a frame is taken. Frames of other epochs are late, which is not an
 * error: they are dropped. */
enum frame_epochs {
    EPOCHS_ALL,
    EPOCHS_PRESENT,
    /* In a job of many epochs, survivors use the epoch in which they started. An agent may
     * finish an epoch after the next one has been planned. */
    EPOCHS_OF_WORKERS,
};

struct frame_rule {
    /* -1: the agent broke the protocol. NULL: frames of that type are not allowed. */
    int (*take)(struct job *job, struct node_link *node, const struct agent_frame *frame);
    const ProtobufCMessageDescriptor *message; /* of the body; NULL: `take` reads it */
    enum frame_epochs epochs;
    /* The earliest state of a node that has only one epoch. A node that sends the frame before
     * breaks the protocol. In a job of many epochs an agent is up again while workers of earlier
     * epochs run.
     */
    enum node_state least;
    bool placed; /* dropped if the node is not in the present plan: it has no workers */
};
