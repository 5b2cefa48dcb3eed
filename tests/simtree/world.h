/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A driver and its agents in virtual time, with the shape, the routes and the parcels of the tree
 * (launcher/features/tree). Each agent has a link of its own to the driver, and perhaps one to the
 * agent above it. On the driver's links, results wait while all else overtakes them. Agents end,
 * stand still and go on; connections between agents end, or lose all that is sent without a word.
 * The driver stands still, too. Some agents never get through to the one above.
 *
 * All that the driver sends has a number: results for many and answers to one, and also what it
 * sends before the tree begins. Agents check at once that it comes once, and in this order. When
 * the faults are over, all that was sent to an agent that lives must come within the limit, and be
 * confirmed. The driver ends no connection that it uses. No queue of its links is ever full, though
 * an eighth of the schedules have more results than that.
 *
 * An agent that is so slow that another one does not pass on any more is not found out by what is
 * late.
 *
 * In an eighth of the schedules, only the driver stands still, and the network is quick; then no
 * way may be given up. In another one, the only faults are connections between agents; then no
 * result may take half of --hang-timeout.
 *
 * The outbox, the parcels and the routes are the driver's own. When an agent connects again is not:
 * world.c has a copy of what tree_driver.c does, and only the unit test of that file guards it.
 *
 * Not simulated: TLS, TREE_OPEN, connections that take long, and bodies of frames; that an agent
 * which was late connects again, and how often; that no way is blamed for an agent that seems
 * silent, or while a job ends; answers without data.
 */
#pragma once

#include <stdint.h>

/* What the simulated program does wrong, for the self-test. */
#define LIE_LIST(X)                                                           \
    X(LIE_NONE, "nothing")                                                    \
    X(LIE_NO_REPEAT, "nothing is sent again")                                 \
    X(LIE_TAKES_TWICE, "what came before is taken")                           \
    X(LIE_CONFIRMS_ALL, "what has not come is confirmed, too")                \
    X(LIE_KEEPS_WAY, "no way is given up")                                    \
    X(LIE_COUNTS_PAUSES, "the driver counts while it stands still")           \
    X(LIE_BELIEVES_SENT, "what was sent counts as confirmed")                 \
    X(LIE_JOIN_OVERTAKES, "an order to join overtakes results")               \
    X(LIE_ANSWERS_APART, "answers to questions are no parcels")               \
    X(LIE_NO_PACE, "all that comes again does so at once")                    \
    X(LIE_NO_LIMIT, "the driver is patient, however short --hang-timeout is") \
    X(LIE_DROPS_IN_SILENCE, "nobody says that a full queue drops a result")   \
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
