/* SPDX-License-Identifier: Apache-2.0 */
#include "model/hang/hang.h"

#include <stdlib.h>

#include "base/mem.h"

#define ARMED_CPU_US 50000 /* of a program that has begun to do something */
#define BUSY_PERCENT 1     /* of one processor; threads that only look at a clock use less */
#define BUSY_MIN_US 30000  /* the kernel counts in ticks of 10 ms */
#define BUSY_SLOWLY_PERCENT                                               \
    5 /* since it is quiet: samples of a short limit see less than a tick \
       */
#define FAULTS_PER_S 16
#define FAULTS_MIN 64
#define WAITS_PER_S 4
#define WAITS_MIN 8
#define GPU_POWER_MW 10000 /* one that waits stays within 1 W, and one that works does not */
#define GPU_POWER_SHARE 12 /* the same, of its power */
#define MORE_PERIODS 3
#define GAP_PERIODS 3 /* between two samples that come one after the other */

struct hang_rank {
    uint64_t worker; /* 0: none */
    bool sampled;
    struct hang_sample last;
    int64_t last_ms;
    int64_t quiet_ms;
    uint64_t quiet_cpu_us; /* when this began */
    bool spins;            /* at some time since it has been quiet */
    uint64_t place;        /* since then; 0: not looked at */
    int looks;             /* that showed this place */
};

struct hang {
    struct hang_limits limits;
    int64_t period_ms;
    struct hang_rank *ranks;
    int count;
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

void hang_seat(struct hang *hang, int seat, uint64_t worker)
{
    if (seat >= hang->count && worker == 0)
        return;
    if (seat >= hang->count) {
        hang->ranks = mem_resize_array(hang->ranks, (size_t)seat + 1, sizeof(*hang->ranks));
        for (int i = hang->count; i <= seat; i++)
            hang->ranks[i] = (struct hang_rank){.worker = 0};
        hang->count = seat + 1;
    }
    if (hang->ranks[seat].worker == worker)
        return;
    hang->ranks[seat] = (struct hang_rank){.worker = worker};
    if (hang->sampled) /* the first workers may have printed before anybody looked at them */
        expects_disarm(hang->expects);
    bool any = false;
    for (int i = 0; i < hang->count; i++)
        any = any || (hang->ranks[i].worker != 0 && hang->ranks[i].sampled);
    hang->armed = hang->armed && any; /* of the workers that come next, nobody has begun */
}

static void moved(struct hang_rank *rank)
{
    rank->quiet_ms = 0;
    rank->quiet_cpu_us = rank->last.cpu_us;
    rank->spins = false;
    rank->place = 0;
    rank->looks = 0;
}

/* Whether `grown` is at least `rate` for each second, and more than chance. */
static bool exceeds(uint64_t last, uint64_t next, int64_t elapsed_ms, uint64_t rate, uint64_t least)
{
    uint64_t grown = next > last ? next - last : 0; /* a child that ends can take some along */
    uint64_t wanted = (uint64_t)elapsed_ms * rate / 1000;
    return grown >= (wanted > least ? wanted : least);
}

static bool gpu_moves(const struct hang_sample *last, const struct hang_sample *next)
{
    if (!next->has_gpu)
        return false;
    uint64_t before = last->gpu_power_mw, now = next->gpu_power_mw;
    uint64_t change = now > before ? now - before : before - now;
    bool changed = last->has_gpu && change > GPU_POWER_MW &&
                   change > (before > now ? before : now) / GPU_POWER_SHARE;
    return next->gpu_memory_use > 0 || changed;
}

static enum hang_way way_of(const struct hang_sample *last, const struct hang_sample *next,
                            int64_t elapsed_ms)
{
    if (next->output != last->output || next->operations != last->operations || next->debugged ||
        gpu_moves(last, next) || exceeds(last->io_bytes, next->io_bytes, 0, 0, HANG_IO_BYTES) ||
        exceeds(last->faults, next->faults, elapsed_ms, FAULTS_PER_S, FAULTS_MIN))
        return HANG_MOVES;
    if (!exceeds(last->cpu_us, next->cpu_us, elapsed_ms, BUSY_PERCENT * 10000, BUSY_MIN_US))
        return HANG_WAITS;
    bool works = exceeds(last->waits, next->waits, elapsed_ms, WAITS_PER_S, WAITS_MIN);
    return works ? HANG_MOVES : HANG_SPINS;
}

/* A host with too many processes gives a rank that spins only a little of each sample. */
static bool spins_slowly(const struct hang_rank *rank)
{
    return exceeds(rank->quiet_cpu_us, rank->last.cpu_us, rank->quiet_ms,
                   BUSY_SLOWLY_PERCENT * 10000, BUSY_MIN_US);
}

static bool has_begun(const struct hang_sample *sample)
{
    return sample->output > 0 || sample->operations > 0 || sample->io_bytes >= HANG_IO_BYTES ||
           sample->cpu_us >= ARMED_CPU_US;
}

void hang_sample(struct hang *hang, int seat, const struct hang_sample *sample, int64_t now_ms)
{
    if (seat < 0 || seat >= hang->count || hang->ranks[seat].worker == 0)
        return;
    struct hang_rank *rank = &hang->ranks[seat];
    hang->sampled = true;
    int64_t elapsed = now_ms - rank->last_ms;
    bool unknown = !rank->sampled || elapsed > GAP_PERIODS * hang->period_ms;
    enum hang_way way = unknown ? HANG_MOVES : way_of(&rank->last, sample, elapsed);
    if (unknown || sample->debugged)
        expects_restart(hang->expects, now_ms);
    hang->armed = hang->armed || has_begun(sample);
    rank->last = *sample;
    rank->last_ms = now_ms;
    rank->sampled = true;
    if (way == HANG_MOVES) {
        moved(rank);
        return;
    }
    rank->quiet_ms += elapsed;
    rank->spins = rank->spins || way == HANG_SPINS || spins_slowly(rank);
}

void hang_place(struct hang *hang, int seat, uint64_t place)
{
    if (seat < 0 || seat >= hang->count || !hang->ranks[seat].spins)
        return;
    struct hang_rank *rank = &hang->ranks[seat];
    if (place == 0 || (rank->place != 0 && rank->place != place)) {
        moved(rank);
        return;
    }
    rank->place = place;
    rank->looks++;
}

int64_t hang_quiet_ms(const struct hang *hang, int64_t now_ms)
{
    int64_t quiet = INT64_MAX;
    for (int seat = 0; seat < hang->count; seat++) {
        const struct hang_rank *rank = &hang->ranks[seat];
        bool known = rank->sampled && now_ms - rank->last_ms <= GAP_PERIODS * hang->period_ms;
        int64_t its = known ? rank->quiet_ms : 0;
        if (rank->worker != 0 && its < quiet)
            quiet = its;
    }
    return quiet < INT64_MAX && hang->armed ? quiet : 0;
}

struct spinning {
    bool any, uncertain; /* uncertain: not looked at often enough */
};

static struct spinning spinning_ranks(const struct hang *hang)
{
    struct spinning found = {.any = false};
    for (int seat = 0; seat < hang->count; seat++) {
        const struct hang_rank *rank = &hang->ranks[seat];
        found.any = found.any || rank->spins;
        found.uncertain = found.uncertain || (rank->spins && rank->looks < HANG_LOOKS);
    }
    return found;
}

/* Looks count only if they follow each other up to the verdict. */
static void forget_looks(struct hang *hang)
{
    for (int seat = 0; seat < hang->count; seat++) {
        hang->ranks[seat].place = 0;
        hang->ranks[seat].looks = 0;
    }
}

/* The time up to which every rank has been sampled. */
static int64_t seen_ms(const struct hang *hang)
{
    int64_t seen = INT64_MAX;
    for (int seat = 0; seat < hang->count; seat++) {
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
        bool met = expects_last_ms(hang->expects, hang->unmet) > hang->unmet_ms;
        hang->unmet = -1;
        return met ? HANG_PASSED : HANG_NOTHING;
    }
    if (hang->unmet >= 0 || hang->found)
        return HANG_NOTHING;
    hang->unmet = expects_overdue(hang->expects, seen);
    hang->unmet_ms = now_ms;
    return hang->unmet >= 0 ? HANG_FOUND : HANG_NOTHING;
}

/* A verdict may come soon. */
static bool is_near(const struct hang *hang, int64_t quiet_ms)
{
    const struct hang_limits *limits = &hang->limits;
    bool kill = limits->hang_ms > 0 && !hang->found && hang->unmet < 0;
    bool warn = limits->warning_ms > 0 && !hang->warned;
    return (kill && quiet_ms >= limits->hang_ms / 2) ||
           (warn && quiet_ms >= limits->warning_ms / 2);
}

bool hang_wants_more(const struct hang *hang, int64_t now_ms)
{
    bool wanted = hang->limits.warning_ms > 0 || hang->limits.hang_ms > 0;
    return wanted && hang_quiet_ms(hang, now_ms) >= MORE_PERIODS * hang->period_ms;
}

static enum hang_news judge_silence(struct hang *hang, int64_t now_ms)
{
    const struct hang_limits *limits = &hang->limits;
    int64_t quiet = hang_quiet_ms(hang, now_ms);
    bool kill = limits->hang_ms > 0 && !hang->found &&
                hang->unmet<0, warn = limits->warning_ms> 0 && !hang->warned;
    struct spinning spinning = spinning_ranks(hang);
    bool moved_on = quiet == 0 || quiet < hang->quiet_ms;
    hang->quiet_ms = quiet;
    if ((hang->warned || hang->found) && moved_on) {
        hang->warned = hang->found = false;
        return HANG_PASSED;
    }
    if (kill && quiet >= limits->hang_ms && !spinning.uncertain) {
        hang->found = hang->warned = true;
        return HANG_FOUND;
    }
    if (warn && quiet >= limits->warning_ms && !spinning.uncertain) {
        hang->warned = true;
        return HANG_WARNING;
    }
    bool near = is_near(hang, quiet);
    if (!near)
        forget_looks(hang);
    return near && spinning.any ? HANG_LOOK : HANG_NOTHING;
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

enum hang_way hang_way(const struct hang *hang, int seat)
{
    if (seat < 0 || seat >= hang->count || hang->ranks[seat].quiet_ms == 0)
        return HANG_MOVES;
    return hang->ranks[seat].spins ? HANG_SPINS : HANG_WAITS;
}
