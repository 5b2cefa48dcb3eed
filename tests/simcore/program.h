/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the simulated ranks do: a program that a seed determines. All ranks make the same steps,
 * each in an order of its own. Some calls are wrong on purpose: one rank submits something else.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/request.h"
#include "sim/rng.h"

enum { RANKS_MAX = 6, SETS_MAX = 6, STEPS_MAX = 12, CALLS_MAX = 24 };

struct sim_set {
    int ranks[RANKS_MAX], count; /* global, ascending */
};

/* One operation of a step, on all ranks of its set. */
struct call {
    int set; /* index in `sets` */
    char name[8];
    enum kind kind;
    enum hvd_type type;
    enum hvd_op op;
    int64_t shape[2];
    int priority; /* the highest of all ranks: that of set rank 0 */
    int odd_rank; /* a set rank that submits something else; -1: none */
    int odd_what;
    int target; /* KIND_ADD_SET, KIND_REMOVE_SET: index in `sets` */
};

struct step {
    struct call calls[CALLS_MAX];
    int count;
};

struct program {
    uint64_t seed;
    int ranks, set_count;
    int static_count; /* sets that exist from the start */
    struct sim_set sets[SETS_MAX];
    struct step steps[STEPS_MAX];
    int step_count;
    bool in_order; /* every rank submits in the same order, and waits after each call */
    bool unequal;  /* all other ranks give lower priorities than set rank 0 */
    bool joins;    /* ranks have different numbers of steps, and join then */
    int own_steps[RANKS_MAX];
    int hurry_percent;  /* how often a rank waits in a way that the core can see */
    int64_t delay_ns;   /* mean time between two submissions */
    int64_t latency_ns; /* mean time of a message */
    int slow_rank;      /* takes ten times as long; -1: none */
    int dies;           /* a rank that is killed; -1: none */
    bool freezes;       /* it stops instead, and its connections stay */
    int leaves;         /* a rank that shuts down early; -1: none */
    int64_t fault_ns;   /* when */
    size_t capacity, threshold;
    int64_t cycle_ns;
    bool tunes;
};

void program_generate(uint64_t seed, struct program *program);

/* What a rank of the call's set submits. The caller owns it. */
struct request program_request(const struct program *program, const struct call *call,
                               int set_rank);

/* The rank's number in the set, or -1. */
int program_set_rank(const struct program *program, int set, int rank);
