/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/mpi/rounds.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/mem.h"
#include "wire/packing.h"

/* Enough for every program that waits for its steps; a program that does not is ended. Joining
 * searches all open rounds. */
#define PENDING_MAX 2048

/* The part of one node in a round. */
struct part {
    bool needed, joined, pmi1;
    uint64_t token;
    uint32_t epoch;
    void *bytes;
    size_t length;
};

struct round {
    TAILQ_ENTRY(round) next;
    char *key;
    uint32_t *ranks;
    size_t rank_count;
    struct part *parts; /* by node */
    int needed, joined;
    size_t bytes;
    bool on_demand; /* the nodes can do without the bytes of the others */
    bool kept;      /* they have to: there are too many */
};

struct mpi_rounds {
    const struct plan *plan;
    size_t began_with; /* ranks */
    struct mpi_limits limits;
    size_t bytes, pending;
    void (*answer)(void *context, int node, const struct mpi_answer *answer);
    void *context;
    TAILQ_HEAD(, round) open; /* oldest first */
    bool *lost;               /* by node */
    uint64_t last_round;
};

struct mpi_rounds *mpi_rounds_create(const struct plan *plan, const struct mpi_limits *limits,
                                     void (*answer)(void *context, int node,
                                                    const struct mpi_answer *answer),
                                     void *context)
{
    struct mpi_rounds *rounds =
        MEM_NEW((struct mpi_rounds){.plan = plan,
                                    .began_with = (size_t)plan->size,
                                    .limits = *limits,
                                    .answer = answer,
                                    .context = context,
                                    .lost = mem_array((size_t)plan->node_count, sizeof(bool))});
    TAILQ_INIT(&rounds->open);
    return rounds;
}

void mpi_rounds_grow(struct mpi_rounds *rounds, const struct plan *plan)
{
    rounds->plan = plan;
}

static void drop_bytes(struct mpi_rounds *rounds, struct round *round)
{
    for (int i = 0; i < rounds->plan->node_count; i++) {
        free(round->parts[i].bytes);
        round->parts[i].bytes = NULL;
        round->parts[i].length = 0;
    }
    rounds->bytes -= round->bytes;
    round->bytes = 0;
}

static void round_free(struct mpi_rounds *rounds, struct round *round)
{
    drop_bytes(rounds, round);
    free(round->parts);
    free(round->ranks);
    free(round->key);
    free(round);
}

void mpi_rounds_destroy(struct mpi_rounds *rounds)
{
    if (rounds == NULL)
        return;
    while (!TAILQ_EMPTY(&rounds->open)) {
        struct round *round = TAILQ_FIRST(&rounds->open);
        TAILQ_REMOVE(&rounds->open, round, next);
        round_free(rounds, round);
    }
    free(rounds->lost);
    free(rounds);
}

size_t mpi_rounds_pending(const struct mpi_rounds *rounds)
{
    return rounds->pending;
}

/* The bytes of all nodes in node order, or none. They move, so that they are there twice only
 * meanwhile. */
static struct shared_block *gather(struct mpi_rounds *rounds, struct round *round)
{
    struct shared_block *all = shared_block_create(round->bytes);
    uint8_t *at = all->bytes;
    for (int i = 0; i < rounds->plan->node_count; i++) {
        struct part *part = &round->parts[i];
        if (part->length > 0)
            memcpy(at, part->bytes, part->length);
        at += part->length;
        free(part->bytes);
        part->bytes = NULL;
    }
    return all;
}

/* The same in fewer bytes, if that helps. *expanded: how many they were; 0: the block is as before.
 */
static struct shared_block *shrink(const struct mpi_limits *limits, struct shared_block *all,
                                   size_t *expanded)
{
    struct buf small AUTO_BUF = BUF_INIT(all->length);
    *expanded = 0;
    if (limits->shrink == 0 || all->length < limits->shrink ||
        !packing_shrink(all->bytes, all->length, &small))
        return all;
    *expanded = all->length;
    shared_block_release(all);
    all = shared_block_create(small.length);
    memcpy(all->bytes, buf_text(&small), small.length);
    return all;
}

/* What each node gets. */
static struct shared_block *result(struct mpi_rounds *rounds, struct round *round, bool complete,
                                   size_t *expanded)
{
    if (!complete)
        drop_bytes(rounds, round);
    struct shared_block *all = shrink(&rounds->limits, gather(rounds, round), expanded);
    if (!round->on_demand || all->length <= rounds->limits.demand / (size_t)round->joined)
        return all;
    shared_block_release(all);
    *expanded = 0;
    return shared_block_create(0);
}

/* Answers every node that has joined, and removes the round. */
static void end(struct mpi_rounds *rounds, struct round *round, const char *problem)
{
    size_t expanded = 0;
    TAILQ_REMOVE(&rounds->open, round, next);
    rounds->pending--;
    struct shared_block *all = result(rounds, round, problem == NULL, &expanded);
    uint64_t number = ++rounds->last_round;
    for (int i = 0; i < rounds->plan->node_count; i++) {
        const struct part *part = &round->parts[i];
        struct mpi_answer answer = {.token = part->token,
                                    .epoch = part->epoch,
                                    .pmi1 = part->pmi1,
                                    .problem = problem,
                                    .round = number,
                                    .data = all,
                                    .expanded = expanded};
        if (part->joined)
            rounds->answer(rounds->context, i, &answer);
    }
    shared_block_release(all);
    round_free(rounds, round);
}

static bool is_step(const struct round *round, const struct mpi_step *step)
{
    size_t size = step->rank_count * sizeof(*step->ranks);
    return round->rank_count == step->rank_count && round->on_demand == step->on_demand &&
           strcmp(round->key, step->key) == 0 &&
           (size == 0 || memcmp(round->ranks, step->ranks, size) == 0);
}

static struct round *find(const struct mpi_rounds *rounds, int node, const struct mpi_step *step)
{
    struct round *round;
    TAILQ_FOREACH (round, &rounds->open, next) {
        if (!round->parts[node].joined && is_step(round, step))
            return round;
    }
    return NULL;
}

static void need(struct round *round, int node)
{
    round->needed += !round->parts[node].needed;
    round->parts[node].needed = true;
}

static struct round *add(struct mpi_rounds *rounds, const struct mpi_step *step)
{
    const struct plan *plan = rounds->plan;
    struct round *round = MEM_NEW(
        (struct round){.key = mem_strdup(step->key),
                       .ranks = mem_dup(step->ranks, step->rank_count * sizeof(*step->ranks)),
                       .rank_count = step->rank_count,
                       .on_demand = step->on_demand,
                       .parts = mem_array((size_t)plan->node_count, sizeof(struct part))});
    for (size_t i = 0; i < step->rank_count; i++)
        need(round, plan->ranks[step->ranks[i]].node);
    for (size_t i = 0; i < rounds->began_with && step->rank_count == 0; i++)
        need(round, plan->ranks[i].node);
    TAILQ_INSERT_TAIL(&rounds->open, round, next);
    rounds->pending++;
    return round;
}

/* Whether the ranks exist, ascend, and one of them is on this node, which gives all it must. */
static bool makes_sense(const struct plan *plan, int node, const struct mpi_step *step)
{
    bool here = step->rank_count == 0;
    if (step->kept && !step->on_demand)
        return false;
    for (size_t i = 0; i < step->rank_count; i++) {
        if (step->ranks[i] >= (uint32_t)plan->size ||
            (i > 0 && step->ranks[i] <= step->ranks[i - 1]))
            return false;
        here = here || plan->ranks[step->ranks[i]].node == node;
    }
    return here;
}

static const char *lost_node(const struct mpi_rounds *rounds, const struct round *round)
{
    for (int i = 0; i < rounds->plan->node_count; i++) {
        if (round->parts[i].needed && rounds->lost[i])
            return rounds->plan->nodes[i].name;
    }
    return NULL;
}

/* Fails the round if it needs a lost node; ends it if it is complete. */
static void settle(struct mpi_rounds *rounds, struct round *round)
{
    const char *lost = lost_node(rounds, round);
    if (lost != NULL) {
        char *problem AUTO_FREE = mem_printf("%s was lost", lost);
        end(rounds, round, problem);
    } else if (round->joined == round->needed) {
        end(rounds, round, NULL);
    }
}

/* Does a limit forbid these bytes, too? *limit: which. */
static bool is_too_much(const struct mpi_rounds *rounds, const struct round *round,
                        const struct mpi_step *step, size_t *limit)
{
    const struct mpi_limits *limits = &rounds->limits;
    size_t in_round = limits->round - (round != NULL ? round->bytes : 0);
    bool over = step->kept || step->length > in_round;
    *limit = over ? limits->round : limits->all;
    return over || step->length > limits->all - rounds->bytes;
}

/* Whether the bytes stay with their nodes. */
static bool stays(const struct mpi_rounds *rounds, const struct round *round,
                  const struct mpi_step *step)
{
    size_t limit = 0;
    return step->on_demand && rounds->limits.demand != SIZE_MAX &&
           ((round != NULL && round->kept) || is_too_much(rounds, round, step, &limit));
}

/* Is there room for the bytes of the step, and for a round? */
static bool has_room(const struct mpi_rounds *rounds, const struct round *round,
                     const struct mpi_step *step, struct error *err)
{
    size_t limit = 0;
    if (is_too_much(rounds, round, step, &limit)) {
        error_set(err, "the data that MPI ranks exchange %s exceeds %zu MiB%s",
                  limit == rounds->limits.all ? "in all open steps" : "in one step", limit >> 20,
                  step->on_demand ? " (--mpi-direct has no such limit)" : "");
        return false;
    }
    if (round == NULL && rounds->pending >= PENDING_MAX) {
        error_set(err, "the MPI ranks have more than %d steps (%s) open at the same time",
                  PENDING_MAX, step->key);
        return false;
    }
    return true;
}

static void keep_bytes(struct mpi_rounds *rounds, struct round *round, struct part *part,
                       const struct mpi_step *step)
{
    part->bytes = step->length > 0 ? mem_dup(step->bytes, step->length) : NULL;
    part->length = step->length;
    round->bytes += step->length;
    rounds->bytes += step->length;
}

enum mpi_join mpi_rounds_join(struct mpi_rounds *rounds, int node, const struct mpi_step *step,
                              struct error *err)
{
    if (!makes_sense(rounds->plan, node, step)) {
        error_set(err, "an MPI step that does not involve this node");
        return MPI_NONSENSE;
    }
    struct round *round = find(rounds, node, step);
    bool keep = stays(rounds, round, step);
    struct mpi_step own = *step;
    if (keep) {
        own.length = 0;
        own.kept = false;
    }
    if (!has_room(rounds, round, &own, err))
        return MPI_TOO_MUCH;
    if (round == NULL)
        round = add(rounds, step);
    if (keep)
        drop_bytes(rounds, round);
    round->kept = keep;
    struct part *part = &round->parts[node];
    part->joined = true;
    part->pmi1 = step->pmi1;
    part->token = step->token;
    part->epoch = step->epoch;
    keep_bytes(rounds, round, part, &own);
    round->joined++;
    settle(rounds, round);
    return MPI_JOINED;
}

void mpi_rounds_node_lost(struct mpi_rounds *rounds, int node)
{
    rounds->lost[node] = true;
    for (struct round *round = TAILQ_FIRST(&rounds->open), *next; round != NULL; round = next) {
        next = TAILQ_NEXT(round, next);
        settle(rounds, round);
    }
}

/* The first rank of the round for which `gone` is true, on a node that has not joined; -1: none. */
static int find_gone(const struct mpi_rounds *rounds, const struct round *round,
                     bool (*gone)(void *context, int rank), void *context)
{
    const struct plan *plan = rounds->plan;
    size_t count = round->rank_count == 0 ? rounds->began_with : round->rank_count;
    for (size_t i = 0; i < count; i++) {
        int rank = round->rank_count == 0 ? (int)i : (int)round->ranks[i];
        if (!round->parts[plan->ranks[rank].node].joined && gone(context, rank))
            return rank;
    }
    return -1;
}

bool mpi_rounds_stuck(const struct mpi_rounds *rounds, bool (*gone)(void *context, int rank),
                      void *context, int *joined_node, int *gone_rank)
{
    const struct round *round;
    TAILQ_FOREACH (round, &rounds->open, next) {
        *gone_rank = find_gone(rounds, round, gone, context);
        if (*gone_rank < 0)
            continue;
        *joined_node = 0;
        while (!round->parts[*joined_node].joined)
            (*joined_node)++;
        return true;
    }
    return false;
}
