/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated job's state, which world.c and check.c share. */
#pragma once

#include "simcore/agenda.h"
#include "simcore/world.h"

enum { OPERATIONS_MAX = 600, TICKETS_MAX = 400 };

/* A submission of a rank. */
struct ticket {
    const struct call *call; /* NULL: a join */
    int step, completions;
    enum hvd_status status;
    char text[200];
    int last_joined;
};

struct sim_rank {
    bool alive, left, finished;
    int step, position, outstanding;
    bool waits;
    int order[CALLS_MAX];
    struct ticket tickets[TICKETS_MAX];
    int ticket_count;
    struct rng rng;
};

/* The core of a rank in a set. */
struct node {
    struct core *core;
    bool blocked, ended, lost;
    int waits_for; /* a set whose end this node waits for; -1: none */
    int64_t tick_ns;
    int runs;           /* operations that it has begun */
    int tunings;        /* how often its threshold and its cycle time have changed */
    int least_priority; /* of the operations since the root has sent a decision */
    struct task *inbox;
    size_t inbox_count, inbox_room;
    int64_t arrivals[RANKS_MAX]; /* of the last message from each */
};

/* The k-th operation of a set. */
struct operation {
    char *keys; /* of its tensors */
    int arrived, tunings;
    bool has_data;
};

struct world {
    const struct program *program;
    struct core_config configs[SETS_MAX][RANKS_MAX];
    struct node nodes[SETS_MAX][RANKS_MAX];
    struct sim_rank ranks[RANKS_MAX];
    struct operation *operations[SETS_MAX];
    struct agenda agenda;
    int64_t now_ns;
    enum fault fault;
    bool fault_done, broken_job, verbose;
    struct rng rng;
    struct statistics *statistics;
    struct verdict *verdict;
    uint64_t events;
};

__attribute__((format(printf, 3, 4))) void
world_break(struct world *world, enum invariant invariant, const char *format, ...);

/* Of an operation that a node begins. */
void check_operation(struct world *world, int set, int rank, const struct action *action);
/* Of a submission that is complete. */
void check_ticket(struct world *world, int rank, const struct ticket *ticket);
/* At the end. */
void check_world(struct world *world);
