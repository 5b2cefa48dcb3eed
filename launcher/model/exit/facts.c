/* SPDX-License-Identifier: Apache-2.0 */
#include "model/exit/facts.h"

#include <signal.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/status.h"

#define NODE_FALL_NS (INT64_C(500) * 1000000)

void exit_facts_init(struct exit_facts *f, const struct plan *plan,
                     const struct exit_outside *outside)
{
    *f = (struct exit_facts){.plan = plan, .outside = outside, .first_kill_ns = EXIT_NEVER};
    f->ranks = mem_array((size_t)plan->size, sizeof(*f->ranks));
    f->nodes = mem_array((size_t)plan->node_count, sizeof(*f->nodes));
    for (int n = 0; n < plan->node_count; n++)
        f->nodes[n] = (struct exit_node){.killed_ns = EXIT_NEVER, .lost_ns = EXIT_NEVER};
}

void exit_facts_clear(struct exit_facts *f)
{
    for (int r = 0; r < f->plan->size; r++)
        exit_record_clear(&f->ranks[r]);
    for (int n = 0; n < f->plan->node_count; n++)
        free(f->nodes[n].lost_text);
    free(f->ranks);
    free(f->nodes);
}

static const struct exit_node *node_of(const struct exit_facts *f, int rank)
{
    return &f->nodes[f->plan->ranks[rank].node];
}

static bool after_interruption(const struct exit_facts *f, const struct exit_record *record)
{
    if (f->outside->interrupted.signal == 0)
        return false;
    /* a rank that the same signal killed died after it, whatever a doubtful clock says */
    bool same = record->fact == FACT_SIGNALED && record->code == f->outside->interrupted.signal;
    int64_t early_ns = same ? record->uncertainty_ns + f->outside->interrupted.round_ns : 0;
    return record->when_ns + early_ns > f->outside->interrupted.when_ns;
}

/* A process that kills the agent may kill its ranks too, and some of them a moment before it. */
static bool fell_with_node(const struct exit_facts *f, int rank)
{
    const struct exit_record *record = &f->ranks[rank];
    int64_t lost_ns = node_of(f, rank)->lost_ns;
    return record->fact == FACT_SIGNALED && record->code == SIGKILL &&
           exit_facts_loss_is_causal(f, f->plan->ranks[rank].node) &&
           record->when_ns > lost_ns - NODE_FALL_NS;
}

bool exit_facts_is_consequence(const struct exit_facts *f, int rank)
{
    const struct exit_record *record = &f->ranks[rank];
    return exit_record_failed(record) && (record->when_ns > node_of(f, rank)->killed_ns ||
                                          after_interruption(f, record) || fell_with_node(f, rank));
}

bool exit_facts_loss_is_causal(const struct exit_facts *f, int node)
{
    const struct exit_node *state = &f->nodes[node];
    bool lost = state->lost_ns != EXIT_NEVER && state->lost_ns <= state->killed_ns;
    return lost && (f->outside->interrupted.signal == 0 ||
                    state->lost_ns <= f->outside->interrupted.when_ns);
}

static bool launcher_is_causal(const struct exit_facts *f)
{
    bool failed =
        f->outside->launcher.status != 0 && f->outside->launcher.when_ns <= f->first_kill_ns;
    return failed && (f->outside->interrupted.signal == 0 ||
                      f->outside->launcher.when_ns <= f->outside->interrupted.when_ns);
}

static bool earlier(const struct exit_facts *f, int rank, int than)
{
    return than < 0 || f->ranks[rank].when_ns < f->ranks[than].when_ns;
}

static void raise_max(struct exit_survey *s, int status, int rank)
{
    if (status > s->max_status) {
        s->max_status = status;
        s->max_rank = rank;
    }
}

static void survey_ranks(const struct exit_facts *f, struct exit_survey *s)
{
    for (int r = 0; r < f->plan->size; r++) {
        const struct exit_record *record = &f->ranks[r];
        bool failed = exit_record_failed(record);
        if (!exit_record_ended(record) && s->statusless_rank < 0)
            s->statusless_rank = r;
        if (failed || !exit_record_ended(record))
            s->all_clean = false;
        if (!failed)
            continue;
        if (exit_facts_is_consequence(f, r)) {
            s->late_rank = earlier(f, r, s->late_rank) ? r : s->late_rank;
            continue;
        }
        s->first_rank = earlier(f, r, s->first_rank) ? r : s->first_rank;
        raise_max(s, exit_record_status(record), r);
    }
}

struct exit_survey exit_facts_survey(const struct exit_facts *f)
{
    struct exit_survey s = {
        .first_rank = -1,
        .first_node = -1,
        .late_rank = -1,
        .late_node = -1,
        .statusless_rank = -1,
        .launcher = launcher_is_causal(f),
        .all_clean = true,
        .max_rank = -1,
    };
    survey_ranks(f, &s);
    for (int n = 0; n < f->plan->node_count; n++) {
        if (exit_facts_loss_is_causal(f, n)) {
            if (s.first_node < 0 || f->nodes[n].lost_ns < f->nodes[s.first_node].lost_ns)
                s.first_node = n;
            raise_max(&s, STATUS_NODE_LOST, -1);
        } else if (f->nodes[n].lost_ns != EXIT_NEVER) {
            s.late_node = n;
        }
    }
    if (s.launcher)
        raise_max(&s, f->outside->launcher.status, -1);
    return s;
}

/* Whether `rank` may have failed before `first`, the earliest by the clocks. Only the first failure
 * of each node can have been the first of all: `node_first_ns` holds their times. On the node of
 * `first` itself that leaves the failures with exactly its time. */
static bool is_tied(const struct exit_facts *f, int rank, int first, const int64_t *node_first_ns)
{
    const struct exit_record *a = &f->ranks[rank], *b = &f->ranks[first];
    if (!exit_record_failed(a) || exit_facts_is_consequence(f, rank))
        return false;
    int node = f->plan->ranks[rank].node;
    return a->when_ns == node_first_ns[node] &&
           a->when_ns - b->when_ns <= a->uncertainty_ns + b->uncertainty_ns;
}

static int64_t *first_failure_per_node(const struct exit_facts *f)
{
    int64_t *first = mem_array((size_t)f->plan->node_count, sizeof(*first));
    for (int n = 0; n < f->plan->node_count; n++)
        first[n] = EXIT_NEVER;
    for (int r = 0; r < f->plan->size; r++) {
        int node = f->plan->ranks[r].node;
        if (exit_record_failed(&f->ranks[r]) && !exit_facts_is_consequence(f, r) &&
            f->ranks[r].when_ns < first[node])
            first[node] = f->ranks[r].when_ns;
    }
    return first;
}

struct exit_tie exit_facts_tie(const struct exit_facts *f, int first)
{
    struct exit_tie tie = {.named = -1};
    int64_t *node_first_ns AUTO_FREE = first_failure_per_node(f);
    int best = -1, worst = 2;
    for (int r = 0; r < f->plan->size; r++) {
        if (!is_tied(f, r, first, node_first_ns))
            continue;
        int grade = exit_record_grade(&f->ranks[r]);
        int64_t apart = f->ranks[r].when_ns - f->ranks[first].when_ns;
        if (tie.count < EXIT_TIED_SHOWN_MAX)
            tie.shown[tie.count] = r;
        tie.count++;
        tie.span_ns = apart > tie.span_ns ? apart : tie.span_ns;
        worst = grade < worst ? grade : worst;
        if (grade > best) {
            best = grade;
            tie.named = r;
        }
    }
    tie.by_grade = best > worst;
    return tie;
}
