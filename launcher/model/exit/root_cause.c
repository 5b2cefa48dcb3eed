/* SPDX-License-Identifier: Apache-2.0 */
#include "model/exit/root_cause.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define SECOND_NS INT64_C(1000000000)
#define EXIT_WITHIN_NS (5 * SECOND_NS)
#define TIMEOUT_WITHIN_NS (35 * 60 * SECOND_NS) /* Gloo in torch.distributed waits 30 minutes */
#define READING_NS (SECOND_NS / 1000) /* the agent may read two streams in the wrong order */

/* Something that a rank did. */
struct moment {
    const struct root_cause_rank *rank;
    int64_t when_ns;
};

static struct symptom read_whole(const struct root_cause_rank *rank)
{
    struct symptom symptom = {.kind = SYMPTOM_NONE, .peer = -1};
    if (rank->tail != NULL)
        symptom_read(rank->tail, INT64_MAX, &symptom);
    return symptom;
}

/* How far the order of the two may be wrong. */
static int64_t doubt_ns(const struct root_cause_rank *a, const struct root_cause_rank *b)
{
    return a->node == b->node ? 0 : a->uncertainty_ns + b->uncertainty_ns;
}

static bool surely_before(struct moment a, struct moment b)
{
    return b.when_ns - a.when_ns > doubt_ns(a.rank, b.rank);
}

struct root_cause_search {
    const struct root_cause_rank *ranks;
    struct symptom *symptoms; /* of their whole tails; NONE if the rank does not count */
    struct symptom blame;     /* of the first exit */
    struct moment blamed;     /* when it was written */
    struct moment earliest;   /* blame of a peer by any rank */
    int best;                 /* with the earliest error of its own; -1: none */
    struct symptom best_symptom;
    bool doubtful; /* a rank whose errors are MIXED */
    int clean;     /* exited with 0 before; -1: none, -2: several */
    int tied;      /* exited with 0 at the same time; likewise */
    bool rival;    /* the end or the error of another one is near, and blames no peer */
};

/* One that failed before did so in an earlier epoch: in the epoch of the first exit none failed
 * before that one. A rank that aborts the job may end much later, so the time of its error counts.
 */
static bool takes_part(const struct root_cause_search *s, const struct root_cause_rank *rank)
{
    struct moment end = {rank, rank->ended_ns}, exit = {s->blamed.rank, s->blamed.rank->ended_ns};
    bool failed_before =
        rank->ended && !rank->clean && surely_before(end, exit) && surely_before(end, s->blamed);
    return rank->took_part && !failed_before;
}

/* What it wrote before the first exit blamed a peer. */
static struct symptom read_before(const struct root_cause_search *s, int seat)
{
    const struct root_cause_rank *rank = &s->ranks[seat];
    struct symptom symptom = {.kind = SYMPTOM_NONE};
    if (s->symptoms[seat].kind != SYMPTOM_NONE)
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

static void note_clean(struct root_cause_search *s, int seat)
{
    const struct root_cause_rank *rank = &s->ranks[seat], *first = s->blamed.rank;
    int *found = rank->ended_ns < first->ended_ns ? &s->clean : &s->tied;
    bool counts = rank->clean && !rank->ended_by_us;
    if (counts && rank->ended_ns <= first->ended_ns)
        *found = *found == -1 && rank->app == first->app ? seat : -2;
}

/* Not later than an agent may be. */
static bool is_near(const struct root_cause_rank *rank, int64_t when_ns, struct moment than)
{
    return when_ns - than.when_ns <= EXIT_LATE_NS + doubt_ns(rank, than.rank);
}

static bool ended_near(const struct root_cause_search *s, const struct root_cause_rank *rank)
{
    struct moment first = {s->blamed.rank, s->blamed.rank->ended_ns};
    return rank->ended && !rank->ended_by_us && is_near(rank, rank->ending_ns, first);
}

/* A failure without a word, an exit with 0 that was seen after the first exit, or an error of its
 * own that was seen after that of the first exit. */
static void note_rival(struct root_cause_search *s, int seat)
{
    const struct root_cause_rank *rank = &s->ranks[seat];
    const struct symptom *symptom = &s->symptoms[seat];
    bool early = rank->clean && rank->ended_ns <= s->blamed.rank->ended_ns;
    if (symptom->kind == SYMPTOM_NONE && !early && ended_near(s, rank))
        s->rival = true;
    if (symptom->kind == SYMPTOM_OWN && is_near(rank, symptom->when_ns, s->blamed))
        s->rival = true;
}

static void look_at(struct root_cause_search *s, int seat)
{
    const struct root_cause_rank *rank = &s->ranks[seat];
    s->symptoms[seat] = read_whole(rank);
    struct symptom symptom = read_before(s, seat);
    note_clean(s, seat);
    note_rival(s, seat);
    if (symptom.kind == SYMPTOM_MIXED)
        s->doubtful = true;
    if (symptom_blames_peer(symptom.kind) && symptom.when_ns < s->earliest.when_ns)
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
        struct symptom symptom = read_before(s, seat);
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
           is_recent(s, error.when_ns, EXIT_ERROR_NS);
}

/* The exit with 0 may have made the first rank fail. */
static bool may_explain_exit(const struct root_cause_search *s)
{
    if (s->clean < 0)
        return false;
    struct moment exit = {&s->ranks[s->clean], s->ranks[s->clean].ended_ns};
    struct moment first = {s->blamed.rank, s->blamed.rank->ended_ns};
    struct moment closed = {exit.rank, exit.when_ns - EXIT_LATE_NS};
    return surely_before(exit, first) && surely_before(closed, s->earliest) &&
           is_recent(s, exit.when_ns, EXIT_WITHIN_NS);
}

/* What all ranks say, also after the first exit. */
struct witnesses {
    int accused;   /* the rank that they name; -1: none, -2: several */
    int silent;    /* the seat that blames no peer; -1: none, -2: several */
    bool left;     /* one says that a rank has shut its library down in good order */
    bool of_ranks; /* all peers that they blame are ranks for sure */
    bool unclear;  /* a rank has an error of its own */
    int troubled;  /* how many have an error of any kind, or have failed by themselves */
};

static void hear(struct witnesses *w, int seat, const struct symptom *symptom)
{
    switch (symptom->kind) {
    case SYMPTOM_NONE: w->silent = w->silent == -1 ? seat : -2; break;
    case SYMPTOM_LOST:
        w->left = w->left || symptom->left;
        w->of_ranks = w->of_ranks && symptom->of_rank;
        if (symptom->peer >= 0)
            w->accused = w->accused == -1 || w->accused == symptom->peer ? symptom->peer : -2;
        break;
    case SYMPTOM_TIMEOUT: w->of_ranks = false; break;
    case SYMPTOM_OWN:
    case SYMPTOM_MIXED: w->unclear = true; break;
    }
}

/* No other end may be the cause, and the peers do not name another rank. */
static bool explains_exit(const struct root_cause_search *s, const struct witnesses *w)
{
    if (!may_explain_exit(s))
        return false;
    int rank = s->ranks[s->clean].rank;
    bool named =
        (s->blame.peer < 0 || s->blame.peer == rank) && (w->accused < 0 || w->accused == rank);
    return named && s->tied == -1 && !s->rival;
}

/* Its seat in this epoch, if it has one. */
static int seat_of(const struct root_cause_search *s, int count, int rank)
{
    int found = -1;
    for (int seat = 0; seat < count; seat++)
        if (s->ranks[seat].took_part && s->ranks[seat].rank == rank &&
            (found < 0 || takes_part(s, &s->ranks[seat])))
            found = seat;
    return found;
}

static struct witnesses hear_all(const struct root_cause_search *s, int count)
{
    const struct root_cause_rank *ranks = s->ranks;
    struct witnesses w = {.accused = -1, .silent = -1, .of_ranks = true};
    for (int seat = 0; seat < count; seat++) {
        if (!takes_part(s, &ranks[seat]) || ranks[seat].app != s->blamed.rank->app)
            continue;
        hear(&w, seat, &s->symptoms[seat]);
        bool failed = ranks[seat].ended && !ranks[seat].clean && !ranks[seat].ended_by_us;
        w.troubled += failed || s->symptoms[seat].kind != SYMPTOM_NONE;
    }
    return w;
}

/* It failed without a word near the first exit, or wrote an error of its own before the first exit
 * blamed a peer. */
static bool is_suspect(const struct root_cause_search *s, int seat)
{
    const struct root_cause_rank *rank = &s->ranks[seat];
    const struct symptom *symptom = &s->symptoms[seat];
    if (!takes_part(s, rank) || rank->app != s->blamed.rank->app)
        return false;
    if (symptom->kind == SYMPTOM_OWN)
        return is_near(rank, symptom->when_ns, s->blamed);
    return symptom->kind == SYMPTOM_NONE && rank->may_follow && ended_near(s, rank);
}

/* The rank that the others name has blamed no peer, and there is no other suspect. */
static bool is_accused_rightly(const struct root_cause_search *s, int count, int accused)
{
    enum symptom_kind kind = read_whole(&s->ranks[accused]).kind;
    if (kind != SYMPTOM_NONE && kind != SYMPTOM_OWN)
        return false;
    for (int seat = 0; seat < count; seat++)
        if (seat != accused && is_suspect(s, seat))
            return false;
    return true;
}

/* The seat of the rank that left; -1: one cannot tell. */
static int find_left(const struct root_cause_search *s, int count, const struct witnesses *w)
{
    if (w->accused >= 0) {
        int seat = seat_of(s, count, w->accused);
        return seat >= 0 && is_accused_rightly(s, count, seat) ? seat : -1;
    }
    if (w->accused != -1 || w->silent < 0 || w->unclear)
        return -1;
    const struct root_cause_rank *silent = &s->ranks[w->silent];
    bool failed = silent->ended && !silent->ended_by_us && !silent->clean;
    return w->left || (failed && w->of_ranks) ? w->silent : -1;
}

static bool crashed(const struct root_cause_rank *rank)
{
    return !rank->clean && !rank->may_follow;
}

/* The seat of the first rank that crashed near the first exit; -1: none. */
static int find_crash(const struct root_cause_search *s, int count)
{
    int found = -1;
    for (int seat = 0; seat < count; seat++) {
        const struct root_cause_rank *rank = &s->ranks[seat];
        if (takes_part(s, rank) && crashed(rank) && ended_near(s, rank) &&
            (found < 0 || rank->ending_ns < s->ranks[found].ending_ns))
            found = seat;
    }
    return found;
}

/* What explains the exit whose blame has been read. */
static void explain(const struct root_cause_search *s, int count, int first,
                    const struct witnesses *w, struct root_cause *out)
{
    if (s->doubtful)
        return;
    if (s->best >= 0) {
        if (explains_error(s) && is_alone(s, count, first))
            *out = (struct root_cause){ROOT_CAUSE_ERROR, s->best, s->best_symptom, false, -1, -1};
        return;
    }
    int left = find_left(s, count, w), crash = find_crash(s, count);
    if (crash >= 0)
        *out = (struct root_cause){.kind = ROOT_CAUSE_CRASH, .seat = crash};
    else if (explains_exit(s, w))
        *out = (struct root_cause){.kind = ROOT_CAUSE_EARLY_EXIT, .seat = s->clean};
    else if (left >= 0)
        *out = (struct root_cause){.kind = ROOT_CAUSE_LEFT, .seat = left, .left = w->left};
}

void root_cause_find(const struct root_cause_rank *ranks, int count, int first,
                     struct root_cause *out)
{
    *out = (struct root_cause){.kind = ROOT_CAUSE_NONE, .seat = -1};
    struct root_cause_search s = {
        .ranks = ranks, .blame = read_whole(&ranks[first]), .best = -1, .clean = -1, .tied = -1};
    if (!ranks[first].may_follow || !symptom_blames_peer(s.blame.kind))
        return;
    struct symptom *symptoms AUTO_FREE = mem_array((size_t)count, sizeof(*symptoms));
    s.symptoms = symptoms;
    s.symptoms[first] = s.blame;
    s.blamed = s.earliest = (struct moment){&ranks[first], s.blame.when_ns};
    for (int seat = 0; seat < count; seat++)
        if (seat != first && takes_part(&s, &ranks[seat]))
            look_at(&s, seat);
    struct witnesses w = hear_all(&s, count);
    int early = may_explain_exit(&s) ? s.clean : -1;
    /* a connection that ended may be that to another service, if all is well with the other ranks
     */
    if (s.blame.of_rank || w.troubled > 1 || s.tied >= 0 || early >= 0)
        *out = (struct root_cause){ROOT_CAUSE_UNKNOWN, -1, s.blame, false, s.tied, early};
    explain(&s, count, first, &w, out);
}

bool root_cause_came(const struct root_cause_rank *rank)
{
    if (!rank->clean && !rank->may_follow)
        return true; /* a crash, or a kill from outside */
    struct symptom symptom = read_whole(rank);
    return rank->finished && !symptom_blames_peer(symptom.kind);
}

bool root_cause_comes(const struct root_cause_rank *ranks, int count, int first)
{
    struct symptom blame = read_whole(&ranks[first]);
    bool comes = false;
    if (!ranks[first].may_follow || blame.kind != SYMPTOM_LOST || !blame.of_rank)
        return false;
    for (int seat = 0; seat < count; seat++) {
        if (seat == first || !ranks[seat].took_part)
            continue;
        if (ranks[seat].ended ? root_cause_came(&ranks[seat])
                              : read_whole(&ranks[seat]).kind == SYMPTOM_OWN)
            return false;
        comes = comes || !ranks[seat].finished;
    }
    return comes;
}

bool root_cause_follows(const struct root_cause_rank *rank, int node, const struct exit_loss *loss)
{
    int64_t alive_ns = exit_time(loss->alive_ns);
    if (rank->node == node)
        return rank->killed && !rank->ended_by_us && !loss->silent &&
               rank->ended_ns > alive_ns - SECOND_NS / 2;
    struct symptom symptom = read_whole(rank);
    bool at_once =
        symptom.kind == SYMPTOM_LOST && loss->silent; /* who waits for a host waits first */
    int64_t doubt = exit_time(rank->uncertainty_ns) + exit_time(loss->uncertainty_ns);
    return rank->may_follow && symptom_blames_peer(symptom.kind) && !at_once &&
           symptom.when_ns + doubt >= alive_ns;
}
