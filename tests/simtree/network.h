/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages under way between the simulated processes. What one process sends another on the same
 * wire comes in that order. The owner decides, when a message comes, whether its wire still works.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct entry { /* a frame, as it travels */
    int place;
    uint64_t serial; /* 0: no parcel */
    uint64_t number; /* of what the driver sends the agent, parcel or not */
    uint64_t block;  /* the same for all that get the same */
    size_t bytes;    /* of the block */
    int64_t said_ms;
};

enum kind {
    FRAMES,
    LEFT,
    CLOSED,
    LOST,
    TICK,
    TAKEN, /* entry 0 has the serial */
    FAULT,
    BEGIN,
    SEND,
    ANSWER,
    JOIN,
    HELLO, /* to the agent above */
    JOINED,
    HEARD,
    DROPPED /* of the agent above `number` */
};

struct message {
    int64_t at;
    uint64_t order;
    enum kind kind;
    int from, to; /* -1: the driver */
    bool direct;  /* on the agent's own link, else between an agent and the one above it */
    int number;   /* JOIN; JOINED and LEFT to the driver: of the last JOIN. DROPPED: a place */
    size_t bytes;
    size_t count;
    struct entry *entries; /* owned */
};

struct network {
    struct message *heap;
    size_t count, room;
    uint64_t order;
};

void network_add(struct network *network, const struct message *message);
bool network_take(struct network *network, struct message *out); /* the next one */
void network_clear(struct network *network);
