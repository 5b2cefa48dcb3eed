/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/mpi/rounds.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

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
    struct round *next;
    char *key;
    uint32_t *ranks;
    size_t rank_count;
    struct part *parts; /* by node */
    int needed, joined;
    size_t bytes;
};

struct mpi_rounds {
    const struct plan *plan;
    size_t began_with; /* ranks */
    size_t round_limit, limit, bytes, pending;
    void (*answer)(void *context, int node, const struct mpi_answer *answer);
    void *context;
    struct round *first; /* oldest first */
    bool *lost;          /* by node */
    uint64_t last_round;
};

struct mpi_rounds *mpi_rounds_create(const struct plan *plan, size_t round_limit, size_t limit,
                                     void (*answer)(void *context, int node,
                                                    const struct mpi_answer *answer),
                                     void *context)
{
    struct mpi_rounds *rounds = mem_alloc(sizeof(*rounds));
    *rounds = (struct mpi_rounds){.plan = plan,
                                  .began_with = (size_t)plan->size,
                                  .round_limit = round_limit,
                                  .limit = limit,
                                  .answer = answer,
                                  .context = context,
                                  .lost = mem_array((size_t)plan->node_count, sizeof(bool))};
    return rounds;
}

void mpi_rounds_grow(struct mpi_rounds *rounds, const struct plan *plan)
{
    rounds->plan = plan;
}

static void round_free(struct round *round, int node_count)
{
    for (int i = 0; i < node_count; i++)
        free(round->parts[i].bytes);
    free(round->parts);
    free(round->ranks);
    free(round->key);
    free(round);
}

void mpi_rounds_destroy(struct mpi_rounds *rounds)
{
    if (rounds == NULL)
        return;
    while (rounds->first != NULL) {
        struct round *round = rounds->first;
        rounds->first = round->next;
        round_free(round, rounds->plan->node_count);
    }
    free(rounds->lost);
    free(rounds);
}

size_t mpi_rounds_pending(const struct mpi_rounds *rounds)
{
    return rounds->pending;
}

static void take_out(struct mpi_rounds *rounds, struct round *round)
{
    struct round **at = &rounds->first;
    while (*at != round)
        at = &(*at)->next;
    *at = round->next;
    rounds->bytes -= round->bytes;
    rounds->pending--;
}

/* The bytes of all nodes in node order, or none. They move: a node's own copy is gone then. */
static struct shared_block *gather(struct round *round, int node_count, bool complete)
{
    struct shared_block *all = shared_block_create(complete ? round->bytes : 0);
    uint8_t *at = all->bytes;
    for (int i = 0; i < node_count && complete; i++) {
        struct part *part = &round->parts[i];
        if (part->length > 0)
            memcpy(at, part->bytes, part->length);
        at += part->length;
        free(part->bytes);
        part->bytes = NULL;
    }
    return all;
}

/* Answers every node that has joined, and removes the round. */
static void end(struct mpi_rounds *rounds, struct round *round, const char *problem)
{
    int node_count = rounds->plan->node_count;
    take_out(rounds, round);
    struct shared_block *all = gather(round, node_count, problem == NULL);
    uint64_t number = ++rounds->last_round;
    for (int i = 0; i < node_count; i++) {
        const struct part *part = &round->parts[i];
        struct mpi_answer answer = {.token = part->token,
                                    .epoch = part->epoch,
                                    .pmi1 = part->pmi1,
                                    .problem = problem,
                                    .round = number,
                                    .data = all};
        if (part->joined)
            rounds->answer(rounds->context, i, &answer);
    }
    shared_block_release(all);
    round_free(round, node_count);
}

static bool is_step(const struct round *round, const struct mpi_step *step)
{
    size_t size = step->rank_count * sizeof(*step->ranks);
    return round->rank_count == step->rank_count && strcmp(round->key, step->key) == 0 &&
           (size == 0 || memcmp(round->ranks, step->ranks, size) == 0);
}

static struct round *find(const struct mpi_rounds *rounds, int node, const struct mpi_step *step)
{
    struct round *round = rounds->first;
    while (round != NULL && (round->parts[node].joined || !is_step(round, step)))
        round = round->next;
    return round;
}

static void need(struct round *round, int node)
{
    round->needed += !round->parts[node].needed;
    round->parts[node].needed = true;
}

static struct round *add(struct mpi_rounds *rounds, const struct mpi_step *step)
{
    const struct plan *plan = rounds->plan;
    struct round *round = mem_alloc(sizeof(*round));
    *round = (struct round){.key = mem_strdup(step->key),
                            .ranks = mem_dup(step->ranks, step->rank_count * sizeof(*step->ranks)),
                            .rank_count = step->rank_count,
                            .parts = mem_array((size_t)plan->node_count, sizeof(struct part))};
    for (size_t i = 0; i < step->rank_count; i++)
        need(round, plan->ranks[step->ranks[i]].node);
    for (size_t i = 0; i < rounds->began_with && step->rank_count == 0; i++)
        need(round, plan->ranks[i].node);
    struct round **last = &rounds->first;
    while (*last != NULL)
        last = &(*last)->next;
    *last = round;
    rounds->pending++;
    return round;
}

/* Whether the ranks exist, ascend, and one of them is on this node. */
static bool makes_sense(const struct plan *plan, int node, const struct mpi_step *step)
{
    bool here = step->rank_count == 0;
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

enum mpi_join mpi_rounds_join(struct mpi_rounds *rounds, int node, const struct mpi_step *step,
                              struct error *err)
{
    if (!makes_sense(rounds->plan, node, step)) {
        error_set(err, "an MPI step that does not involve this node");
        return MPI_NONSENSE;
    }
    struct round *round = find(rounds, node, step);
    size_t so_far = round != NULL ? round->bytes : 0;
    if (step->length > rounds->round_limit - so_far ||
        step->length > rounds->limit - rounds->bytes) {
        error_set(
            err, "the data that MPI ranks exchange at their start exceeds %zu MiB",
            (step->length > rounds->round_limit - so_far ? rounds->round_limit : rounds->limit) >>
                20);
        return MPI_TOO_MUCH;
    }
    if (round == NULL && rounds->pending >= PENDING_MAX) {
        error_set(err, "the MPI ranks have more than %d steps (%s) open at the same time",
                  PENDING_MAX, step->key);
        return MPI_TOO_MUCH;
    }
    if (round == NULL)
        round = add(rounds, step);
    struct part *part = &round->parts[node];
    part->joined = true;
    part->pmi1 = step->pmi1;
    part->token = step->token;
    part->epoch = step->epoch;
    part->bytes = step->length > 0 ? mem_dup(step->bytes, step->length) : NULL;
    part->length = step->length;
    round->joined++;
    round->bytes += step->length;
    rounds->bytes += step->length;
    settle(rounds, round);
    return MPI_JOINED;
}

void mpi_rounds_node_lost(struct mpi_rounds *rounds, int node)
{
    rounds->lost[node] = true;
    struct round *next = NULL;
    for (struct round *round = rounds->first; round != NULL; round = next) {
        next = round->next;
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
    for (const struct round *round = rounds->first; round != NULL; round = round->next) {
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
