/* SPDX-License-Identifier: Apache-2.0 */
#include "model/exit/facts.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"

#define NODE_FALL_NS (INT64_C(500) * 1000000)

static const struct exit_loss not_lost = {.by_ns = EXIT_NEVER};

void exit_facts_init(struct exit_facts *f, const struct plan *plan,
                     const struct exit_outside *outside)
{
    *f = (struct exit_facts){
        .plan = plan, .outside = outside, .first_kill_ns = EXIT_NEVER, .own_error_ns = EXIT_NEVER};
    f->ranks = mem_array((size_t)plan->size, sizeof(*f->ranks));
    f->said = mem_array((size_t)plan->size, sizeof(*f->said));
    f->nodes = mem_array((size_t)plan->node_count, sizeof(*f->nodes));
    for (int n = 0; n < plan->node_count; n++)
        f->nodes[n] =
            (struct exit_node){.killed_ns = EXIT_NEVER, .seen_ns = INT64_MIN, .loss = not_lost};
}

void exit_facts_grow(struct exit_facts *f, const struct plan *plan)
{
    size_t old = (size_t)f->plan->size, size = (size_t)plan->size;
    f->ranks = mem_resize_array(f->ranks, size, sizeof(*f->ranks));
    f->said = mem_resize_array(f->said, size, sizeof(*f->said));
    memset(f->ranks + old, 0, (size - old) * sizeof(*f->ranks));
    memset(f->said + old, 0, (size - old) * sizeof(*f->said));
    f->plan = plan;
}

void exit_facts_clear(struct exit_facts *f)
{
    for (int r = 0; r < f->plan->size; r++)
        exit_record_clear(&f->ranks[r]);
    for (int n = 0; n < f->plan->node_count; n++)
        free(f->nodes[n].lost_text);
    free(f->ranks);
    free(f->said);
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

/* The last sign of life of the node's agent. */
static int64_t alive_ns(const struct exit_node *node)
{
    return node->seen_ns > node->loss.alive_ns ? node->seen_ns : node->loss.alive_ns;
}

/* A process that kills the agent may kill its ranks too, and some of them a moment before it. */
static bool fell_with_node(const struct exit_facts *f, int rank)
{
    const struct exit_record *record = &f->ranks[rank];
    return record->fact == FACT_SIGNALED && record->code == SIGKILL &&
           exit_facts_loss_is_causal(f, f->plan->ranks[rank].node) &&
           !node_of(f, rank)->loss.silent &&
           record->when_ns > alive_ns(node_of(f, rank)) - NODE_FALL_NS;
}

/* From when on peers may fail because of the loss. */
static int64_t onset_ns(const struct exit_facts *f, int node)
{
    int64_t onset = alive_ns(&f->nodes[node]);
    const struct plan_node *place = &f->plan->nodes[node];
    for (int i = 0; i < place->local_size; i++) {
        int rank = place->ranks[i];
        int64_t fell_ns = f->ranks[rank].when_ns - EXIT_LATE_NS;
        if (fell_ns < onset && fell_with_node(f, rank))
            onset = fell_ns;
    }
    return onset;
}

/* The agent may not have seen the last ends of its ranks, and their peers may have noticed them. */
static int64_t unseen_onset_ns(const struct exit_facts *f, int node)
{
    int64_t onset = onset_ns(f, node), unseen = alive_ns(&f->nodes[node]) - EXIT_LATE_NS;
    const struct plan_node *place = &f->plan->nodes[node];
    for (int i = 0; i < place->local_size && !f->nodes[node].loss.silent; i++)
        if (f->ranks[place->ranks[i]].fact == FACT_STARTED)
            return unseen < onset ? unseen : onset;
    return onset;
}

static enum exit_order order_of(const struct exit_facts *f, int64_t when_ns, int64_t doubt_ns,
                                int node, int64_t onset)
{
    const struct exit_loss *loss = &f->nodes[node].loss;
    if (when_ns + doubt_ns + loss->uncertainty_ns < onset)
        return EXIT_BEFORE;
    return when_ns - doubt_ns - EXIT_LATE_NS > loss->by_ns ? EXIT_AFTER : EXIT_UNORDERED;
}

static enum exit_order order_of_error(const struct exit_facts *f, int rank, int node)
{
    const struct exit_said *said = &f->said[rank];
    return order_of(f, said->when_ns, said->uncertainty_ns, node, onset_ns(f, node));
}

bool exit_facts_stands_alone(const struct exit_facts *f, int rank)
{
    const struct exit_record *record = &f->ranks[rank];
    const struct exit_said *said = &f->said[rank];
    int64_t when_ns = symptom_blames_peer(said->kind) ? said->when_ns : record->when_ns;
    return exit_record_grade(record) > 1 || said->kind == SYMPTOM_OWN ||
           said->kind == SYMPTOM_MIXED || f->own_error_ns < when_ns - record->uncertainty_ns;
}

static enum exit_order order_of_end(const struct exit_facts *f, int rank, int node)
{
    int64_t when_ns = f->ranks[rank].when_ns;
    bool alone = exit_facts_stands_alone(f, rank);
    if (f->plan->ranks[rank].node == node) /* one clock, and the agent has reported it */
        return when_ns <= onset_ns(f, node) ? EXIT_BEFORE : EXIT_UNORDERED;
    return order_of(f, when_ns, f->ranks[rank].uncertainty_ns, node,
                    alone ? onset_ns(f, node) : unseen_onset_ns(f, node));
}

static bool follows_from(const struct exit_facts *f, int rank, int node)
{
    if (f->plan->ranks[rank].node == node || !exit_facts_loss_is_causal(f, node))
        return false;
    const struct exit_said *said = &f->said[rank];
    if (!symptom_blames_peer(said->kind))
        return order_of_end(f, rank, node) == EXIT_AFTER;
    enum exit_order order = order_of_error(f, rank, node);
    /* who does not hear of a host any more waits first */
    bool at_once = said->kind == SYMPTOM_LOST && f->nodes[node].loss.silent;
    return order == EXIT_AFTER || (order == EXIT_UNORDERED && !at_once);
}

static bool follows_loss(const struct exit_facts *f, int rank)
{
    if (f->lost == 0 || exit_facts_stands_alone(f, rank))
        return false;
    for (int node = 0; node < f->plan->node_count; node++)
        if (follows_from(f, rank, node))
            return true;
    return false;
}

/* An abort may have come before the process was ending. */
static bool after_kill(const struct exit_record *record, const struct exit_node *node)
{
    return record->when_ns > node->killed_ns &&
           exit_is_after_kill(record->when_ns, record->ending_ns, node->killed_ns);
}

/* By our kill, by the user or by what ended its node. */
static bool was_ended(const struct exit_facts *f, int rank)
{
    const struct exit_record *record = &f->ranks[rank];
    return after_kill(record, node_of(f, rank)) || after_interruption(f, record) ||
           fell_with_node(f, rank);
}

bool exit_facts_is_consequence(const struct exit_facts *f, int rank)
{
    return exit_record_failed(&f->ranks[rank]) && (was_ended(f, rank) || follows_loss(f, rank));
}

bool exit_facts_loss_is_causal(const struct exit_facts *f, int node)
{
    const struct exit_node *state = &f->nodes[node];
    bool lost = state->loss.by_ns != EXIT_NEVER && !state->lost_late;
    return lost && (f->outside->interrupted.signal == 0 ||
                    state->loss.by_ns <= f->outside->interrupted.when_ns);
}

bool exit_facts_may_precede(const struct exit_facts *f, int other, int node)
{
    int64_t doubt_ns = f->nodes[other].loss.uncertainty_ns;
    return exit_facts_loss_is_causal(f, other) &&
           onset_ns(f, other) - doubt_ns <= f->nodes[node].loss.by_ns;
}

struct exit_rival exit_facts_rival(const struct exit_facts *f, int rank)
{
    struct exit_rival rival = {-1, EXIT_BEFORE};
    for (int n = 0; n < f->plan->node_count; n++) {
        if (!exit_facts_loss_is_causal(f, n))
            continue;
        enum exit_order order = order_of_end(f, rank, n);
        if (order > rival.order || (order == rival.order && order != EXIT_BEFORE &&
                                    f->nodes[n].loss.by_ns < f->nodes[rival.node].loss.by_ns))
            rival = (struct exit_rival){n, order};
    }
    return rival;
}

static bool may_have_erred_before(const struct exit_facts *f, int rank, int node)
{
    const struct exit_record *record = &f->ranks[rank];
    bool clean = exit_record_ended(record) && !exit_record_failed(record);
    return f->said[rank].kind == SYMPTOM_OWN && !clean &&
           onset_ns(f, node) - f->said[rank].when_ns <= EXIT_ERROR_NS &&
           order_of_error(f, rank, node) != EXIT_AFTER;
}

struct exit_error exit_facts_error_before(const struct exit_facts *f, int node)
{
    const struct plan_node *place = &f->plan->nodes[node];
    int first = -1;
    for (int i = 0; i < place->local_size; i++)
        if (f->said[place->ranks[i]].kind != SYMPTOM_NONE)
            return (struct exit_error){place->ranks[i], true};
    for (int r = 0; r < f->plan->size; r++)
        if (may_have_erred_before(f, r, node) &&
            (first < 0 || f->said[r].when_ns < f->said[first].when_ns))
            first = r;
    return (struct exit_error){first, first >= 0 && order_of_error(f, first, node) == EXIT_BEFORE};
}

static bool earlier(const struct exit_facts *f, int rank, int than)
{
    return than < 0 || f->ranks[rank].when_ns < f->ranks[than].when_ns;
}

/* It ended after the loss, and does not say that it waited or noticed something after it. */
static bool may_have_reason(const struct exit_facts *f, int rank, int node)
{
    bool says_so = symptom_blames_peer(f->said[rank].kind) && follows_from(f, rank, node);
    return exit_record_failed(&f->ranks[rank]) && !was_ended(f, rank) && !says_so &&
           !exit_facts_stands_alone(f, rank) && order_of_end(f, rank, node) == EXIT_AFTER;
}

int exit_facts_doubtful_after(const struct exit_facts *f, int node)
{
    int first = -1;
    for (int r = 0; r < f->plan->size && f->nodes[node].loss.silent; r++)
        if (may_have_reason(f, r, node) && earlier(f, r, first))
            first = r;
    return first;
}

static bool launcher_is_causal(const struct exit_facts *f)
{
    bool failed =
        f->outside->launcher.status != 0 && f->outside->launcher.when_ns <= f->first_kill_ns;
    return failed && (f->outside->interrupted.signal == 0 ||
                      f->outside->launcher.when_ns <= f->outside->interrupted.when_ns);
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
            if (s.first_node < 0 || f->nodes[n].loss.by_ns < f->nodes[s.first_node].loss.by_ns)
                s.first_node = n;
            raise_max(&s, STATUS_NODE_LOST, -1);
        } else if (f->nodes[n].loss.by_ns != EXIT_NEVER) {
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
    /* an agent on a busy machine sees an end later, and an end for a reason of its own comes first
     */
    bool stronger = exit_record_grade(a) > 1 && exit_record_grade(b) < 2;
    int64_t late_ns = stronger && node != f->plan->ranks[first].node ? EXIT_LATE_NS : 0;
    return a->when_ns == node_first_ns[node] &&
           a->when_ns - b->when_ns <= a->uncertainty_ns + b->uncertainty_ns + late_ns;
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
