/* SPDX-License-Identifier: Apache-2.0 */
/* A frame from an agent, and the rule for its type: who takes it, and when it may come. */
#pragma once

#include "driver/job/node_link.h"

struct job;

struct agent_frame {
    uint8_t type;
    uint32_t epoch; /* 0: it is about no epoch */
    const uint8_t *body;
    size_t length;
};

/* From which epochs a frame is taken. Others are late, not wrong: they are dropped. */
enum frame_epochs {
    EPOCHS_ALL,
    EPOCHS_PRESENT,
    /* In a job of many epochs survivors speak in the epoch in which they were started, and an agent
     * may be done with an epoch when the next one has been planned. */
    EPOCHS_OF_WORKERS,
};

struct frame_rule {
    /* -1: the agent broke the protocol. NULL: none of that type may come. */
    int (*take)(struct job *job, struct node_link *node, const struct agent_frame *frame);
    enum frame_epochs epochs;
    /* The least state of a node that has only one epoch; one that sends it earlier breaks the
     * protocol. In a job of many epochs an agent is up again while workers of earlier epochs run.
     */
    enum node_state least;
    bool placed; /* dropped from a node that is not in the present plan: it has no workers */
};

#define FRAME_RULES (UINT8_MAX + 1) /* rules are found by type */
