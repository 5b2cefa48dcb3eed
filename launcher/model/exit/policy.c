/* SPDX-License-Identifier: Apache-2.0 */
#include "model/exit/policy.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "model/exit/facts.h"

struct exit_policy {
    enum exit_rule rule;
    struct exit_facts facts;
    bool ending;    /* the teardown was requested, or a kill has begun it */
    int cause_rank; /* of the last verdict */
};

struct exit_policy *exit_policy_create(enum exit_rule rule, const struct plan *plan,
                                       const struct exit_outside *outside)
{
    struct exit_policy *p = mem_alloc(sizeof(*p));
    p->rule = rule;
    p->cause_rank = -1;
    exit_facts_init(&p->facts, plan, outside);
    return p;
}

void exit_policy_destroy(struct exit_policy *p)
{
    if (p == NULL)
        return;
    exit_facts_clear(&p->facts);
    free(p);
}

void exit_policy_grow(struct exit_policy *p, const struct plan *plan)
{
    exit_facts_grow(&p->facts, plan);
}

static struct exit_record *find(const struct exit_policy *p, int rank)
{
    return rank >= 0 && rank < p->facts.plan->size ? &p->facts.ranks[rank] : NULL;
}

static bool start_ending(struct exit_policy *p)
{
    bool first = !p->ending && !exit_outside_ends(p->facts.outside);
    p->ending = true;
    return first;
}

bool exit_policy_ended(struct exit_policy *p, enum exit_fact fact, const struct exit_event *event,
                       const char *text)
{
    struct exit_record *record = find(p, event->seat);
    if (record == NULL)
        return false;
    if (fact == FACT_EXITED && event->signaled)
        fact = FACT_SIGNALED;
    exit_record_merge(record, fact, event, text);
    struct exit_node *node = &p->facts.nodes[p->facts.plan->ranks[event->seat].node];
    if (record->when_ns > node->seen_ns)
        node->seen_ns = record->when_ns;
    bool causal = exit_record_failed(record) && !exit_facts_is_consequence(&p->facts, event->seat);
    return causal && start_ending(p);
}

void exit_policy_started(struct exit_policy *p, int rank)
{
    struct exit_record *record = find(p, rank);
    if (record != NULL && record->fact == FACT_NONE)
        record->fact = FACT_STARTED;
}

bool exit_policy_node_lost(struct exit_policy *p, int node, const struct exit_loss *loss,
                           const char *text)
{
    if (node < 0 || node >= p->facts.plan->node_count)
        return false;
    struct exit_node *state = &p->facts.nodes[node];
    if (state->loss.by_ns != EXIT_NEVER)
        return false;
    state->loss = *loss;
    state->loss.alive_ns = exit_time(loss->alive_ns);
    state->loss.by_ns = exit_time(loss->by_ns);
    state->loss.uncertainty_ns = loss->uncertainty_ns < 0 ? 0 : exit_time(loss->uncertainty_ns);
    state->lost_late = state->killed_ns != EXIT_NEVER; /* its clock may be far off ours */
    state->lost_text = exit_text(text, EXIT_TEXT_FOREIGN);
    p->facts.lost++;
    return exit_facts_loss_is_causal(&p->facts, node) && start_ending(p);
}

void exit_policy_said(struct exit_policy *p, int rank, const struct symptom *symptom,
                      int64_t uncertainty_ns)
{
    if (find(p, rank) == NULL)
        return;
    struct exit_said said = {symptom->kind, exit_time(symptom->when_ns),
                             uncertainty_ns < 0 ? 0 : exit_time(uncertainty_ns)};
    int64_t written_ns = said.when_ns + said.uncertainty_ns;
    p->facts.said[rank] = said;
    if (said.kind == SYMPTOM_OWN && written_ns < p->facts.own_error_ns)
        p->facts.own_error_ns = written_ns;
}

void exit_policy_killed(struct exit_policy *p, int node, int64_t when_ns)
{
    if (node < 0 || node >= p->facts.plan->node_count)
        return;
    p->ending = true;
    if (when_ns < p->facts.nodes[node].killed_ns)
        p->facts.nodes[node].killed_ns = when_ns;
    if (when_ns < p->facts.first_kill_ns)
        p->facts.first_kill_ns = when_ns;
}

static enum exit_cause cause_of_record(const struct exit_record *record)
{
    switch (record->fact) {
    case FACT_EXITED: return CAUSE_EXIT;
    case FACT_SIGNALED: return CAUSE_SIGNAL;
    case FACT_ABORTED: return CAUSE_ABORT;
    case FACT_NOT_EXECUTED: return CAUSE_EXEC;
    case FACT_NONE:
    case FACT_STARTED: break;
    }
    return CAUSE_NO_STATUS;
}

static void blame_rank(const struct exit_policy *p, int rank, struct verdict *out, struct buf *text)
{
    out->cause = cause_of_record(&p->facts.ranks[rank]);
    out->seat = rank;
    out->node = p->facts.plan->ranks[rank].node;
    out->status = exit_record_status(&p->facts.ranks[rank]);
    exit_record_describe(&p->facts.ranks[rank], rank, text);
}

/* Ranks of the node that had started and whose end is unknown. */
static int ranks_running(const struct exit_policy *p, int node)
{
    const struct plan_node *place = &p->facts.plan->nodes[node];
    int running = 0;
    for (int i = 0; i < place->local_size; i++)
        running += p->facts.ranks[place->ranks[i]].fact == FACT_STARTED;
    return running;
}

/* The nodes that may have been lost before this one. */
static void name_others(const struct exit_policy *p, int node, struct verdict *out,
                        struct buf *text)
{
    int count = 0, other = -1;
    for (int n = 0; n < p->facts.plan->node_count && p->facts.lost > 1; n++) {
        if (n == node || !exit_facts_may_precede(&p->facts, n, node))
            continue;
        other = other < 0 ? n : other;
        count++;
    }
    if (count == 0)
        return;
    out->tie = true;
    buf_printf(text, "; node%s %s", count == 1 ? "" : "s", p->facts.plan->nodes[other].name);
    if (count > 1)
        buf_printf(text, " and %d more", count - 1);
    buf_printf(text, " %s lost at about the same time", count == 1 ? "was" : "were");
}

static void name_too(const struct exit_policy *p, int rank, const char *when, struct verdict *out,
                     struct buf *text)
{
    buf_puts(text, "; ");
    exit_record_describe(&p->facts.ranks[rank], rank, text);
    buf_puts(text, when);
    out->tie = true;
}

static void blame_node(const struct exit_policy *p, int node, struct verdict *out, struct buf *text)
{
    const char *why = p->facts.nodes[node].lost_text;
    int running = ranks_running(p, node);
    out->cause = CAUSE_NODE_LOST;
    out->node = node;
    out->status = STATUS_NODE_LOST;
    buf_printf(text, "node %s was lost%s%s", p->facts.plan->nodes[node].name,
               why != NULL ? ": " : "", why != NULL ? why : "");
    if (running > 0)
        buf_printf(text, "%s%d of its %d ranks %s running", "; ", running,
                   p->facts.plan->nodes[node].local_size, running == 1 ? "was" : "were");
    name_others(p, node, out, text);
    int doubtful = exit_facts_doubtful_after(&p->facts, node);
    if (doubtful >= 0)
        name_too(p, doubtful, " after that, perhaps for another reason", out, text);
    struct exit_error error = exit_facts_error_before(&p->facts, node);
    if (error.rank < 0)
        return;
    out->tie = true;
    buf_printf(text,
               error.before ? "; before that, rank %d had written an error"
                            : "; at about the same time, rank %d wrote an error",
               error.rank);
}

static void blame_launcher(const struct exit_policy *p, struct verdict *out, struct buf *text)
{
    exit_outside_blame_launcher(p->facts.outside, out);
    buf_puts(text, out->explanation);
}

static void explain_tie(const struct exit_policy *p, const struct exit_tie *tie, struct buf *text)
{
    buf_puts(text, "; ranks ");
    int shown = tie->count < EXIT_TIED_SHOWN_MAX ? tie->count : EXIT_TIED_SHOWN_MAX;
    for (int i = 0; i < shown; i++) {
        bool last = i == tie->count - 1;
        buf_printf(text, "%s%d", i == 0 ? "" : last ? " and " : ", ", tie->shown[i]);
    }
    if (tie->count > shown)
        buf_printf(text, " and %d more", tie->count - shown);
    if (tie->span_ns < 50000)
        buf_puts(text, " failed at the same moment");
    else
        buf_printf(text, " failed within %.1f ms of each other", (double)tie->span_ns / 1e6);
    buf_printf(text, "; hvdrun takes rank %d as the first, because %s", tie->named,
               tie->by_grade ? exit_record_grade_reason(&p->facts.ranks[tie->named])
                             : "it is the lowest rank");
}

/* Nothing causal happened and yet not all is well. The news may be late (a failure in the middle of
 * the teardown), missing, or the teardown began for a reason that we do not know. */
static void blame_remains(const struct exit_policy *p, const struct exit_survey *s,
                          struct verdict *out, struct buf *text)
{
    if (p->facts.outside->launcher.status != 0) {
        blame_launcher(p, out, text);
    } else if (s->late_node >= 0) {
        blame_node(p, s->late_node, out, text);
    } else if (s->late_rank >= 0) {
        out->cause = CAUSE_LAUNCHER;
        out->status = STATUS_LAUNCHER;
        buf_puts(text, "the launcher ended the job without a recorded reason");
    } else if (s->statusless_rank >= 0) {
        blame_rank(p, s->statusless_rank, out, text);
        out->status = STATUS_LAUNCHER;
    } else {
        buf_printf(text, "%d rank%s succeeded", p->facts.plan->size,
                   p->facts.plan->size == 1 ? "" : "s");
    }
}

static void blame_first_rank(const struct exit_policy *p, const struct exit_tie *tie,
                             struct verdict *out, struct buf *text)
{
    blame_rank(p, tie->named, out, text);
    out->tie = tie->count > 1;
    if (out->tie)
        explain_tie(p, tie, text);
}

/* A rank failed and a node was lost. */
static void blame_either(const struct exit_policy *p, const struct exit_survey *s,
                         struct verdict *out, struct buf *text)
{
    struct exit_tie tie = exit_facts_tie(&p->facts, s->first_rank);
    struct exit_rival rival = exit_facts_rival(&p->facts, tie.named);
    bool alone = exit_facts_stands_alone(&p->facts, tie.named);
    if (rival.order == EXIT_BEFORE) {
        blame_first_rank(p, &tie, out, text);
        return;
    }
    if (rival.order == EXIT_UNORDERED && (alone || p->facts.nodes[rival.node].loss.silent)) {
        blame_first_rank(p, &tie, out, text);
        buf_printf(text, "; node %s was lost at about the same time",
                   p->facts.plan->nodes[rival.node].name);
        out->tie = true;
        return;
    }
    blame_node(p, rival.node, out, text);
    if (rival.order == EXIT_UNORDERED)
        name_too(p, tie.named, " at about the same time", out, text);
}

static void find_cause(const struct exit_policy *p, const struct exit_survey *s,
                       struct verdict *out, struct buf *text)
{
    /* on equal times a rank goes before its node, and both before the launcher */
    int64_t rank_ns = s->first_rank >= 0 ? p->facts.ranks[s->first_rank].when_ns : EXIT_NEVER;
    int64_t node_ns = s->first_node >= 0 ? p->facts.nodes[s->first_node].loss.by_ns : EXIT_NEVER;
    int64_t launcher_ns = s->launcher ? p->facts.outside->launcher.when_ns : EXIT_NEVER;
    if (s->launcher && launcher_ns < rank_ns && launcher_ns < node_ns) {
        blame_launcher(p, out, text);
    } else if (s->first_rank >= 0 && s->first_node >= 0) {
        blame_either(p, s, out, text);
    } else if (s->first_rank >= 0) {
        struct exit_tie tie = exit_facts_tie(&p->facts, s->first_rank);
        blame_first_rank(p, &tie, out, text);
    } else if (s->first_node >= 0) {
        blame_node(p, s->first_node, out, text);
    } else if (p->facts.outside->interrupted.signal != 0 && !s->all_clean) {
        exit_outside_blame_interruption(p->facts.outside, out);
        buf_puts(text, out->explanation);
    } else {
        blame_remains(p, s, out, text);
    }
}

static void apply_max(const struct exit_survey *s, struct verdict *out, struct buf *text)
{
    if (s->max_status <= out->status)
        return;
    out->status = s->max_status;
    if (s->max_rank >= 0)
        buf_printf(text, "; exit status %d is the highest, that of rank %d", out->status,
                   s->max_rank);
    else
        buf_printf(text, "; exit status %d is the highest", out->status);
}

static void apply_rank0(const struct exit_policy *p, const struct exit_survey *s,
                        struct verdict *out, struct buf *text)
{
    const struct exit_record *zero = &p->facts.ranks[0];
    bool causal = exit_record_failed(zero) && !exit_facts_is_consequence(&p->facts, 0);
    bool outside = s->first_node >= 0 || s->launcher;
    bool interrupted = out->cause == CAUSE_INTERRUPTED || out->cause == CAUSE_STOPPED;
    bool overlooked = interrupted || (s->first_rank >= 0 && !outside);
    bool clean = exit_record_ended(zero) && !exit_record_failed(zero);
    if (causal || (clean && overlooked)) {
        out->status = exit_record_status(zero);
        if (out->seat != 0)
            buf_printf(text, "; exit status %d is that of rank 0", out->status);
    } else if (outside && out->seat >= 0) {
        out->status = s->first_node >= 0 ? STATUS_NODE_LOST : p->facts.outside->launcher.status;
        buf_printf(text, "; exit status %d, because %s, too", out->status,
                   s->first_node >= 0 ? "a node was lost" : "the launcher failed");
    }
}

void exit_policy_verdict(struct exit_policy *p, struct verdict *out)
{
    struct buf text AUTO_BUF = BUF_INIT(sizeof(out->explanation) - 1);
    struct exit_survey s = exit_facts_survey(&p->facts);
    *out = (struct verdict){.seat = -1, .node = -1};
    find_cause(p, &s, out, &text);
    if (p->rule == EXIT_MAX)
        apply_max(&s, out, &text);
    else if (p->rule == EXIT_RANK0 && p->facts.plan->size > 0)
        apply_rank0(p, &s, out, &text);
    p->cause_rank = out->seat;
    memcpy(out->explanation, buf_text(&text), text.length + 1);
}

enum exit_role exit_policy_role(const struct exit_policy *p, int rank)
{
    const struct exit_record *record = find(p, rank);
    if (record == NULL)
        return ROLE_NONE;
    if (rank == p->cause_rank)
        return ROLE_CAUSE;
    if (exit_record_failed(record))
        return exit_facts_is_consequence(&p->facts, rank) ? ROLE_CONSEQUENCE : ROLE_FAILED;
    if (exit_record_ended(record))
        return ROLE_OK;
    if (record->fact == FACT_NONE)
        return ROLE_NOT_STARTED;
    return p->facts.nodes[p->facts.plan->ranks[rank].node].loss.by_ns != EXIT_NEVER ? ROLE_LOST
                                                                                    : ROLE_NONE;
}

int exit_policy_rank_status(const struct exit_policy *p, int rank)
{
    const struct exit_record *record = find(p, rank);
    return record != NULL && exit_record_ended(record) ? exit_record_status(record) : -1;
}
