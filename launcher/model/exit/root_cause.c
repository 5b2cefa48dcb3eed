/* SPDX-License-Identifier: Apache-2.0 */
#include "model/exit/root_cause.h"

#include <string.h>

#define SECOND_NS INT64_C(1000000000)
#define ERROR_WITHIN_NS (60 * SECOND_NS)
#define EXIT_WITHIN_NS (5 * SECOND_NS)
#define TIMEOUT_WITHIN_NS (35 * 60 * SECOND_NS) /* Gloo in torch.distributed waits 30 minutes */
#define READING_NS (SECOND_NS / 1000) /* the agent may read two streams in the wrong order */
#define EXIT_LATE_NS (SECOND_NS / 10) /* a process ends later than its connections */

/* Something that a rank did. */
struct moment {
    const struct root_cause_rank *rank;
    int64_t when_ns;
};

/* How far the order of the two may be wrong. */
static int64_t doubt_ns(const struct root_cause_rank *a, const struct root_cause_rank *b)
{
    return a->node == b->node ? 0 : a->uncertainty_ns + b->uncertainty_ns;
}

static bool surely_before(struct moment a, struct moment b)
{
    return b.when_ns - a.when_ns > doubt_ns(a.rank, b.rank);
}

/* An agent that collects two exits in one turn gives them the same time. */
static bool not_after(struct moment a, struct moment b)
{
    return b.when_ns - a.when_ns >= doubt_ns(a.rank, b.rank);
}

struct root_cause_search {
    const struct root_cause_rank *ranks;
    struct symptom blame;   /* of the first exit */
    struct moment blamed;   /* when it was written */
    struct moment earliest; /* blame of a peer by any rank */
    int best;               /* with the earliest error of its own; -1: none */
    struct symptom best_symptom;
    bool doubtful; /* a rank whose errors are MIXED */
    int clean;     /* exited with 0 before; -1: none, -2: several */
};

static struct symptom read_rank(const struct root_cause_search *s,
                                const struct root_cause_rank *rank)
{
    struct symptom symptom = {.kind = SYMPTOM_NONE};
    if (rank->took_part && rank->tail != NULL)
        symptom_read(rank->tail, s->blamed.when_ns + doubt_ns(rank, s->blamed.rank), &symptom);
    return symptom;
}

/* One that failed before is the first failure of an earlier epoch, or known to hvdrun anyway. */
static bool is_candidate(const struct root_cause_search *s, const struct root_cause_rank *rank,
                         const struct symptom *symptom)
{
    bool failed = rank->ended && !rank->clean && rank->ended_ns < s->blamed.when_ns;
    return symptom->kind == SYMPTOM_OWN && !failed;
}

static void look_at(struct root_cause_search *s, int seat)
{
    const struct root_cause_rank *rank = &s->ranks[seat];
    struct symptom symptom = read_rank(s, rank);
    if (rank->took_part && rank->clean && rank->ended_ns <= s->blamed.rank->ended_ns)
        s->clean = s->clean == -1 && rank->app == s->blamed.rank->app ? seat : -2;
    if (symptom.kind == SYMPTOM_MIXED)
        s->doubtful = true;
    if ((symptom.kind == SYMPTOM_LOST || symptom.kind == SYMPTOM_TIMEOUT) &&
        symptom.when_ns < s->earliest.when_ns)
        s->earliest = (struct moment){rank, symptom.when_ns};
    if (is_candidate(s, rank, &symptom) &&
        (s->best < 0 || symptom.when_ns < s->best_symptom.when_ns)) {
        s->best = seat;
        s->best_symptom = symptom;
    }
}

/* No other error may have come before the best one. */
static bool is_alone(const struct root_cause_search *s, int count, int first)
{
    const struct root_cause_rank *best = &s->ranks[s->best];
    for (int seat = 0; seat < count; seat++) {
        const struct root_cause_rank *rank = &s->ranks[seat];
        if (seat == first || seat == s->best)
            continue;
        struct symptom symptom = read_rank(s, rank);
        if (is_candidate(s, rank, &symptom) && strcmp(symptom.line, s->best_symptom.line) != 0 &&
            symptom.when_ns - s->best_symptom.when_ns <= doubt_ns(rank, best) + READING_NS)
            return false;
    }
    return true;
}

/* Not too long ago for what the first exit wrote. */
static bool is_recent(const struct root_cause_search *s, int64_t when_ns, int64_t within_ns)
{
    bool timeout = s->blame.kind == SYMPTOM_TIMEOUT;
    return s->blamed.when_ns - when_ns <= (timeout ? TIMEOUT_WITHIN_NS : within_ns);
}

static bool explains_error(const struct root_cause_search *s)
{
    struct moment error = {&s->ranks[s->best], s->best_symptom.when_ns};
    return surely_before(error, s->earliest) && surely_before(error, s->blamed) &&
           is_recent(s, error.when_ns, ERROR_WITHIN_NS);
}

static bool explains_exit(const struct root_cause_search *s)
{
    struct moment exit = {&s->ranks[s->clean], s->ranks[s->clean].ended_ns};
    struct moment first = {s->blamed.rank, s->blamed.rank->ended_ns};
    struct moment closed = {exit.rank, exit.when_ns - EXIT_LATE_NS};
    return not_after(exit, first) && surely_before(closed, s->earliest) &&
           is_recent(s, exit.when_ns, EXIT_WITHIN_NS);
}

void root_cause_find(const struct root_cause_rank *ranks, int count, int first,
                     struct root_cause *out)
{
    *out = (struct root_cause){.kind = ROOT_CAUSE_NONE, .seat = -1};
    struct root_cause_search s = {.ranks = ranks, .best = -1, .clean = -1};
    if (ranks[first].tail == NULL)
        return;
    symptom_read(ranks[first].tail, INT64_MAX, &s.blame);
    if (s.blame.kind != SYMPTOM_LOST && s.blame.kind != SYMPTOM_TIMEOUT)
        return;
    s.blamed = s.earliest = (struct moment){&ranks[first], s.blame.when_ns};
    for (int seat = 0; seat < count; seat++)
        if (seat != first)
            look_at(&s, seat);
    if (s.doubtful)
        return;
    if (s.best >= 0) {
        if (explains_error(&s) && is_alone(&s, count, first))
            *out = (struct root_cause){ROOT_CAUSE_ERROR, s.best, s.best_symptom};
    } else if (s.clean >= 0 && explains_exit(&s)) {
        *out = (struct root_cause){.kind = ROOT_CAUSE_EARLY_EXIT, .seat = s.clean};
    }
}
