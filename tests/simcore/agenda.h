/* SPDX-License-Identifier: Apache-2.0 */
/* What is going to happen, in order of time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum task_kind {
    TASK_STEP,    /* a rank goes on with its program */
    TASK_MESSAGE, /* a message reaches a node */
    TASK_TICK,    /* a node's deadline */
    TASK_RESUME,  /* a node's operation is over */
    TASK_FAULT,   /* a rank dies or leaves */
    TASK_LOSE,    /* a node notices that another one has gone */
    TASK_FORCE,   /* a rank does not wait any longer for the end of its sets */
};

struct task {
    int64_t at_ns;
    uint64_t order; /* among those of one time */
    enum task_kind kind;
    int set, rank; /* of the node */
    int from;      /* set rank of the sender */
    char *bytes;   /* owned */
    size_t length;
};

struct agenda {
    struct task *heap;
    size_t count, room;
    uint64_t next;
};

void agenda_destroy(struct agenda *agenda);
void agenda_add(struct agenda *agenda, struct task task);
bool agenda_take(struct agenda *agenda, struct task *task);
