/* SPDX-License-Identifier: Apache-2.0 */
/* What a rank of the simulated job does between two samples, and what a look at it shows. */
#pragma once

#include "features/hang/hang.h"
#include "sim/rng.h"
#include "simhang/world.h"

/* How a rank waits. X(name, text) */
#define WAIT_LIST(X)                                                                \
    X(WAIT_ASLEEP, "in one system call; its other threads look at a clock")         \
    X(WAIT_SPINS, "in a loop")                                                      \
    X(WAIT_CALL, "in a loop of MPI, which cannot be read in each look")             \
    X(WAIT_POLLS, "in a loop that sleeps, and is elsewhere for moments")            \
    X(WAIT_RETRIES, "trying the same again and again, here and there")              \
    X(WAIT_MURMURS, "asleep, and a logger or a progress bar writes")                \
    X(WAIT_HEARTBEAT, "for a message, and gets one now and then that says nothing") \
    X(WAIT_ASKED, "asleep, and what hvdrun asks NCCL travels over its connections")

enum wait {
#define WAIT_ENUM(name, text) name,
    WAIT_LIST(WAIT_ENUM)
#undef WAIT_ENUM
        WAITS
};

struct rank {
    struct hang_sample sample;
    struct hang_look look;
    enum wait wait;
    bool readable; /* its stacks */
    bool missed;   /* they are not in this look */
    int host;
    bool gone;                       /* it has ended, and nobody has its seat */
    bool late;                       /* its last sample was */
    uint64_t idle_mw;                /* of its GPU; 0: it has none */
    uint64_t launches, seen, unseen; /* unseen: while nobody asked */
    uint64_t receivers, receptions;
    int64_t next_ms; /* when it next prints, steps, gets a message or goes elsewhere */
    uint64_t place;
    int64_t part; /* of what happens at a rate */
};

/* What ranks of one job have in common. */
struct scene {
    struct rng *rng;
    int64_t now_ms, ms; /* since the sample before */
    int64_t limit_ms;   /* the shortest */
    int64_t period_ms;
    bool nccl; /* it answers: what comes over TCP is not known */
};

void rank_waits(struct scene *scene, struct rank *rank);
/* false: the phase is none in which a rank uses more or less. `event`: what happens now and then
 * happens in this sample. */
bool rank_moves(struct scene *scene, struct rank *rank, enum phase phase, bool event);
