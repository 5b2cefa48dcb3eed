/* SPDX-License-Identifier: Apache-2.0 */
#include "features/hang/hang.h"

#include <stdlib.h>

#include "base/mem.h"
#include "features/hang/hang_rank.h"

#define BEGUN_CPU_US 50000        /* of a program that has begun to do something */
#define BEGUN_IO_BYTES (64 << 10) /* that the start of a small program does not need */
#define MORE_PERIODS 3
#define GAP_PERIODS 3 /* between two samples that come one after the other */

struct hang {
    struct hang_limits limits;
    int64_t period_ms;
    struct hang_rank *ranks;
    size_t count;
    bool sampled, armed, warned, found;
    int64_t quiet_ms; /* when it was last judged: less silence now means progress meanwhile */
    struct expects *expects;
    int unmet; /* the expectation for which there is a verdict; -1: none */
    int64_t unmet_ms;
};

static int64_t shorter(int64_t a, int64_t b)
{
    if (a <= 0 || b <= 0)
        return a > b ? a : b;
    return a < b ? a : b;
}

struct hang *hang_create(const struct hang_limits *limits, struct expects *expects)
{
    struct hang *hang = mem_alloc(sizeof(*hang));
    int64_t least = shorter(limits->warning_ms, limits->hang_ms);
    int64_t period = shorter(least, expects_shortest_ms(expects)) / HANG_PERIODS;
    if (period < HANG_PERIOD_MIN_MS)
        period = HANG_PERIOD_MIN_MS;
    if (period > HANG_PERIOD_MAX_MS)
        period = HANG_PERIOD_MAX_MS;
    *hang = (struct hang){.limits = *limits, .period_ms = period, .expects = expects, .unmet = -1};
    return hang;
}

bool hang_sign_is_fresh(int64_t now_ms, int64_t said_ms, int64_t asked_ms)
{
    return said_ms != 0 && (now_ms - said_ms < HANG_FRESH_MS || said_ms >= asked_ms);
}

void hang_destroy(struct hang *hang)
{
    if (hang != NULL)
        free(hang->ranks);
    free(hang);
}

int64_t hang_period_ms(const struct hang *hang)
{
    return hang->period_ms;
}

/* The silence of all begins anew. */
static void all_move(struct hang *hang)
{
    for (size_t seat = 0; seat < hang->count; seat++)
        hang_rank_moves(&hang->ranks[seat]);
}

void hang_seat(struct hang *hang, int seat, uint64_t worker)
{
    if ((size_t)seat >= hang->count && worker == 0)
        return;
    hang->ranks = mem_reach(hang->ranks, &hang->count, (size_t)seat + 1, sizeof(*hang->ranks));
    if (hang->ranks[seat].worker == worker)
        return;
    bool ended = hang->ranks[seat].worker != 0;
    hang->ranks[seat] = (struct hang_rank){.worker = worker};
    if (ended)
        all_move(hang);
    if (hang->sampled) /* the first workers may have printed before anybody looked at them */
        expects_disarm(hang->expects);
    bool any = false;
    for (size_t i = 0; i < hang->count; i++)
        any = any || (hang->ranks[i].worker != 0 && hang->ranks[i].sampled);
    hang->armed = hang->armed && any; /* of the workers that come next, nobody has begun */
}

static bool has_begun(const struct hang_sample *sample)
{
    return sample->output > 0 || sample->operations > 0 || sample->io_bytes >= BEGUN_IO_BYTES ||
           sample->cpu_us >= BEGUN_CPU_US;
}

/* The silence before does not count. */
static void arm(struct hang *hang)
{
    hang->armed = true;
    all_move(hang);
}

/* NULL: nobody was ever there. */
static struct hang_rank *rank_at(const struct hang *hang, int seat)
{
    return seat >= 0 && (size_t)seat < hang->count ? &hang->ranks[seat] : NULL;
}

/* Whether nothing is unknown between its last sample and now. */
static bool follows_at(const struct hang *hang, const struct hang_rank *rank, int64_t now_ms)
{
    return rank->sampled && now_ms - rank->last_ms <= GAP_PERIODS * hang->period_ms;
}

/* Somebody knows of the silence, and is told if it ends: only if progress is seen. */
static bool is_told(const struct hang *hang)
{
    return hang->warned || hang->found;
}

void hang_sample(struct hang *hang, int seat, const struct hang_sample *sample, int64_t now_ms)
{
    struct hang_rank *rank = rank_at(hang, seat);
    if (rank == NULL || rank->worker == 0)
        return;
    bool follows = follows_at(hang, rank, now_ms);
    hang->sampled = true;
    if (!follows || sample->held)
        expects_restart(hang->expects, now_ms);
    if (!follows && is_told(hang) && rank->sampled)
        hang_rank_sample_late(rank, sample, now_ms);
    else
        hang_rank_sample(rank, sample, now_ms, follows);
    if (!hang->armed && has_begun(sample))
        arm(hang);
}

void hang_looked(struct hang *hang, int seat, const struct hang_look *look)
{
    struct hang_rank *rank = rank_at(hang, seat);
    if (rank != NULL && rank->worker != 0)
        hang_rank_look(rank, look);
}

void hang_missed(struct hang *hang, int seat)
{
    struct hang_rank *rank = rank_at(hang, seat);
    if (rank != NULL)
        rank->missed = true;
}

int64_t hang_quiet_ms(const struct hang *hang, int64_t now_ms)
{
    int64_t quiet = INT64_MAX;
    for (size_t seat = 0; seat < hang->count; seat++) {
        const struct hang_rank *rank = &hang->ranks[seat];
        bool known = follows_at(hang, rank, now_ms) || is_told(hang);
        int64_t its = known ? rank->quiet_ms : 0;
        if (rank->worker != 0 && its < quiet)
            quiet = its;
    }
    return quiet < INT64_MAX && hang->armed ? quiet : 0;
}

/* Of the ranks that run. */
struct tally {
    int ranks, busy, stray;
    int need_looks, awake; /* only looks can tell whether these work */
    bool uncertain;        /* there were not enough looks at one of them */
};

static struct tally count_ranks(const struct hang *hang)
{
    struct tally tally = {.ranks = 0};
    bool unsure = false, unsure_awake = false;
    for (size_t seat = 0; seat < hang->count; seat++) {
        const struct hang_rank *rank = &hang->ranks[seat];
        if (rank->worker == 0)
            continue;
        bool needs = hang_rank_needs_looks(rank), awake = hang_rank_is_awake(rank);
        tally.ranks++;
        tally.busy += rank->busy;
        tally.stray += rank->strays;
        tally.need_looks += needs;
        tally.awake += awake;
        unsure = unsure || (needs && (rank->missed || rank->looks < HANG_LOOKS));
        unsure_awake = unsure_awake || (awake && rank->looks < HANG_LOOKS);
    }
    tally.uncertain = unsure || (unsure_awake && 2 * tally.awake >= tally.ranks);
    return tally;
}

/* What only all ranks together show: some murmur, and others may work; or many are elsewhere. */
static void judge_together(struct hang *hang)
{
    struct tally tally = count_ranks(hang);
    bool work = tally.busy > 0, stray = 2 * tally.stray >= tally.ranks;
    for (size_t seat = 0; seat < hang->count; seat++) {
        struct hang_rank *rank = &hang->ranks[seat];
        if (work && rank->murmurs)
            hang_rank_accept_murmurs(rank);
        if (stray && rank->strays)
            hang_rank_moves(rank);
    }
}

static void forget_looks(struct hang *hang)
{
    for (size_t seat = 0; seat < hang->count; seat++)
        hang_rank_forget_looks(&hang->ranks[seat]);
}

/* The time up to which every rank has been sampled. */
static int64_t seen_ms(const struct hang *hang)
{
    int64_t seen = INT64_MAX;
    for (size_t seat = 0; seat < hang->count; seat++) {
        const struct hang_rank *rank = &hang->ranks[seat];
        int64_t last = rank->sampled ? rank->last_ms : 0;
        seen = rank->worker != 0 && last < seen ? last : seen;
    }
    return seen < INT64_MAX ? seen : 0;
}

static enum hang_news judge_expects(struct hang *hang, int64_t now_ms)
{
    int64_t seen = seen_ms(hang);
    if (hang->unmet >= 0 && !expects_is_overdue(hang->expects, hang->unmet, seen)) {
        bool met = expects_at(hang->expects, hang->unmet)->last_ms > hang->unmet_ms;
        hang->unmet = -1;
        return met ? HANG_PASSED : HANG_NOTHING;
    }
    if (hang->unmet >= 0 || hang->found)
        return HANG_NOTHING;
    hang->unmet = expects_overdue(hang->expects, seen);
    hang->unmet_ms = now_ms;
    return hang->unmet >= 0 ? HANG_FOUND : HANG_NOTHING;
}

/* Whether a silence of this length leads to the verdict, and to the warning. */
static bool may_find(const struct hang *hang, int64_t quiet_ms)
{
    int64_t limit_ms = hang->limits.hang_ms;
    return limit_ms > 0 && quiet_ms >= limit_ms && !hang->found && hang->unmet < 0;
}

static bool may_warn(const struct hang *hang, int64_t quiet_ms)
{
    int64_t limit_ms = hang->limits.warning_ms;
    return limit_ms > 0 && quiet_ms >= limit_ms && !hang->warned;
}

bool hang_wants_more(const struct hang *hang, int64_t now_ms)
{
    bool wanted = hang->limits.warning_ms > 0 || hang->limits.hang_ms > 0;
    return wanted && hang_quiet_ms(hang, now_ms) >= MORE_PERIODS * hang->period_ms;
}

static enum hang_news judge_silence(struct hang *hang, int64_t now_ms)
{
    judge_together(hang);
    int64_t quiet = hang_quiet_ms(hang, now_ms);
    struct tally tally = count_ranks(hang);
    bool moved_on = quiet == 0 || quiet < hang->quiet_ms;
    hang->quiet_ms = quiet;
    if (is_told(hang) && moved_on) {
        hang->warned = hang->found = false;
        return HANG_PASSED;
    }
    if (may_find(hang, quiet) && !tally.uncertain) {
        hang->found = hang->warned = true;
        return HANG_FOUND;
    }
    if (may_warn(hang, quiet) && !tally.uncertain) {
        hang->warned = true;
        return HANG_WARNING;
    }
    bool near = /* half of it is over */
        may_find(hang, 2 * quiet) || may_warn(hang, 2 * quiet);
    if (!near)
        forget_looks(hang);
    bool wanted = tally.need_looks > 0 || (tally.awake > 0 && 2 * tally.awake >= tally.ranks);
    return near && wanted ? HANG_LOOK : HANG_NOTHING;
}

enum hang_news hang_tick(struct hang *hang, int64_t now_ms)
{
    enum hang_news news = judge_expects(hang, now_ms);
    return news != HANG_NOTHING ? news : judge_silence(hang, now_ms);
}

int hang_unmet(const struct hang *hang)
{
    return hang->unmet;
}

bool hang_sleeps(const struct hang *hang, int seat)
{
    const struct hang_rank *rank = rank_at(hang, seat);
    return rank != NULL && rank->quiet_ms > 0 && rank->last.main_ns > 0 &&
           !hang_rank_is_awake(rank);
}

enum hang_way hang_way(const struct hang *hang, int seat)
{
    const struct hang_rank *rank = rank_at(hang, seat);
    if (rank == NULL || rank->quiet_ms == 0)
        return HANG_MOVES;
    return rank->spins ? HANG_SPINS : HANG_WAITS;
}
