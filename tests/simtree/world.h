/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A driver and its agents in virtual time, with the shape, the routes and the parcels of the tree
 * (launcher/features/tree). Each agent has a link of its own to the driver, and perhaps one to the
 * agent above it. Agents end, stand still and go on; connections between agents end, or lose all
 * that is sent without a word. The driver stands still, too. All that it sends has a number, and
 * agents check at once that it comes once, and in this order. Some agents never get through to the
 * one above. When the faults are over, all that was sent to an agent that lives must come within
 * the limit, and be confirmed. The driver ends no connection that it uses. In an eighth of the
 * schedules, only the driver stands still, and the network is quick; then no way may be given up.
 *
 * Not simulated: TLS, connections that take long, queues that are full, and bodies of frames.
 */
#pragma once

#include <stdint.h>

/* What the simulated program does wrong, for the self-test. */
#define LIE_LIST(X)                                                 \
    X(LIE_NONE, "nothing")                                          \
    X(LIE_NO_REPEAT, "nothing is sent again")                       \
    X(LIE_TAKES_TWICE, "what came before is taken")                 \
    X(LIE_CONFIRMS_ALL, "what has not come is confirmed, too")      \
    X(LIE_KEEPS_WAY, "no way is given up")                          \
    X(LIE_COUNTS_PAUSES, "the driver counts while it stands still") \
    X(LIE_KEEPS_NOTHING, "what is ahead is taken at once")          \
    X(LIE_BELIEVES_OLD, "the driver believes what is about an older order to join")

enum lie {
#define LIE_ENUM(name, text) name,
    LIE_LIST(LIE_ENUM)
#undef LIE_ENUM
        LIES
};

struct outcome {
    const char *problem; /* NULL: all is right */
    int agents;
    uint64_t frames, through, again; /* handed out; of these by others; sent again */
    int given_up, ended;             /* ways; agents */
    int64_t longest_ms;              /* from when a frame was sent until it was taken */
};

/* `agents` 0: as the seed says. */
struct outcome world_run(uint64_t seed, int agents, enum lie lie);
