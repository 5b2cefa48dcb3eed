/* SPDX-License-Identifier: Apache-2.0 */
#include "features/hang/hang_rank.h"

#define BUSY_PERCENT 1    /* of one processor; threads that only look at a clock use less */
#define BUSY_MIN_US 30000 /* the kernel counts in ticks of 10 ms */
#define SPIN_PERCENT 5    /* since it is quiet: samples of a short limit see less than a tick */
#define WAITS_PER_S 4
#define WAITS_MIN 8
#define GPU_POWER_MW 10000 /* one that waits stays within 1 W, and one that works does not */
#define GPU_POWER_SHARE 12 /* the same, of its power */
#define ASIDE_LOOKS (HANG_LOOKS / 4)
#define STAY_LOOKS 2 /* who tries again and again is elsewhere for a moment */

/* Whether a number has grown at this rate, and by more than chance. */
static bool exceeds(uint64_t from, uint64_t to, int64_t ms, uint64_t per_minute, uint64_t least)
{
    uint64_t wanted = (uint64_t)ms * per_minute / 60000;
    return to - from >= (wanted > least ? wanted : least);
}

static bool moves(const struct hang_sums *from, const struct hang_sums *to)
{
    int64_t ms = to->ms - from->ms;
    return exceeds(from->io_bytes, to->io_bytes, ms, 60 * HANG_IO_PER_S, HANG_IO_BYTES) ||
           exceeds(from->faults, to->faults, ms, 60 * HANG_FAULTS_PER_S, HANG_FAULTS_MIN) ||
           exceeds(from->receptions, to->receptions, ms, HANG_RECEIVE_PER_MINUTE, HANG_RECEIVE_MIN);
}

static bool uses(const struct hang_sums *from, const struct hang_sums *to, uint64_t percent)
{
    return exceeds(from->cpu_us, to->cpu_us, to->ms - from->ms, percent * 600000, BUSY_MIN_US);
}

static bool writes_aside(const struct hang_sums *from, const struct hang_sums *to)
{
    return exceeds(from->aside_bytes, to->aside_bytes, to->ms - from->ms, 60 * HANG_IO_PER_S,
                   HANG_IO_BYTES);
}

/* The sums before the last samples, or before all since it has been quiet if these are fewer. */
static const struct hang_sums *past_at(const struct hang_rank *rank, int samples)
{
    int back = samples < rank->past_count ? samples : rank->past_count;
    return &rank->past[(rank->past_next + HANG_SUM - back) % HANG_SUM];
}

/* Over the last sample, the last HANG_SUM of them, or all since it has been quiet. */
static bool at_last(const struct hang_rank *rank,
                    bool (*rule)(const struct hang_sums *from, const struct hang_sums *to))
{
    return rule(past_at(rank, 1), &rank->sums) || rule(past_at(rank, HANG_SUM), &rank->sums) ||
           rule(&rank->quiet_sums, &rank->sums);
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

/* A child that ends can take some along. */
static uint64_t grown(uint64_t last, uint64_t next)
{
    return next > last ? next - last : 0;
}

/* All its main threads slept all the time, and no other thread had much to do. */
static bool sleeps(const struct hang_rank *rank, const struct hang_sample *next, int64_t ms)
{
    const struct hang_sample *last = &rank->last;
    return last->main_ns != 0 && last->main_ns == next->main_ns &&
           !exceeds(0, grown(last->cpu_us, next->cpu_us), ms, BUSY_PERCENT * 600000, BUSY_MIN_US);
}

static void add(struct hang_rank *rank, const struct hang_sample *next, int64_t ms, bool asleep)
{
    const struct hang_sample *last = &rank->last;
    struct hang_sums *sums = &rank->sums;
    uint64_t io = grown(last->io_bytes, next->io_bytes);
    io += last->tcp_data > 0 ? grown(last->tcp_data, next->tcp_data) / HANG_TCP_SHARE : 0;
    rank->past[rank->past_next] = *sums;
    rank->past_next = (rank->past_next + 1) % HANG_SUM;
    rank->past_count += rank->past_count < HANG_SUM;
    sums->ms += ms;
    uint64_t much = ms > 1000 ? (uint64_t)ms * HANG_IO_BYTES / 1000 : HANG_IO_BYTES;
    sums->io_bytes += asleep && io < much ? 0 : io;
    sums->aside_bytes += asleep ? io : 0;
    sums->cpu_us += grown(last->cpu_us, next->cpu_us);
    sums->faults += grown(last->faults, next->faults);
    sums->waits += grown(last->waits, next->waits);
    sums->main_ns += grown(last->main_ns, next->main_ns);
    if (last->receivers == next->receivers)
        sums->receptions += grown(last->receptions, next->receptions);
}

/* Since the sample before. */
static bool bursts(const struct hang_rank *rank)
{
    const struct hang_sums *last = past_at(rank, 1);
    int64_t ms = rank->sums.ms - last->ms;
    return rank->sums.io_bytes - last->io_bytes >= HANG_IO_BYTES ||
           (uses(last, &rank->sums, BUSY_PERCENT) &&
            exceeds(last->waits, rank->sums.waits, ms, 60 * WAITS_PER_S, WAITS_MIN));
}

static bool shows_progress(struct hang_rank *rank, const struct hang_sample *next, int64_t ms)
{
    const struct hang_sample last = rank->last;
    bool asleep = sleeps(rank, next, ms), wrote = next->output != last.output;
    add(rank, next, ms, asleep);
    if (next->operations != last.operations || next->held || gpu_moves(&last, next))
        return true;
    if (wrote && !asleep)
        return true;
    bool murmurs = wrote || at_last(rank, writes_aside);
    rank->murmurs = rank->murmurs || murmurs;
    rank->murmured_ms = murmurs ? 0 : rank->murmured_ms + ms;
    return bursts(rank) || at_last(rank, moves);
}

void hang_rank_moves(struct hang_rank *rank)
{
    rank->quiet_ms = 0;
    rank->quiet_sums = rank->sums;
    rank->past_count = rank->past_next = 0;
    rank->busy = false;
    rank->spins = rank->murmurs = false;
    hang_rank_forget_looks(rank);
}

/* Looks count only if they follow each other up to the verdict. */
void hang_rank_forget_looks(struct hang_rank *rank)
{
    rank->place = rank->stayed = rank->aside = 0;
    rank->looks = rank->place_looks = rank->aside_looks = 0;
    rank->aside_moves = rank->strays = rank->missed = false;
}

/* What it did till then turns out to be progress. */
static void moved_till(struct hang_rank *rank, int64_t ms)
{
    if (ms == 0)
        hang_rank_moves(rank);
    rank->quiet_ms = ms < rank->quiet_ms ? ms : rank->quiet_ms;
}

void hang_rank_accept_murmurs(struct hang_rank *rank)
{
    moved_till(rank, rank->murmured_ms);
    rank->murmurs = false;
}

void hang_rank_sample(struct hang_rank *rank, const struct hang_sample *sample, int64_t now_ms,
                      bool follows)
{
    int64_t ms = now_ms - rank->last_ms;
    bool progress = !follows || shows_progress(rank, sample, ms);
    rank->last = *sample;
    rank->last_ms = now_ms;
    rank->sampled = true;
    if (progress) {
        hang_rank_moves(rank);
        return;
    }
    const struct hang_sums *last = past_at(rank, 1);
    rank->quiet_ms += ms;
    rank->busy = uses(past_at(rank, HANG_SUM), &rank->sums, BUSY_PERCENT);
    rank->idle_ms = rank->busy ? 0 : rank->idle_ms + ms;
    rank->spins = rank->spins || uses(last, &rank->sums, BUSY_PERCENT) ||
                  uses(&rank->quiet_sums, &rank->sums, SPIN_PERCENT);
}

void hang_rank_sample_late(struct hang_rank *rank, const struct hang_sample *sample, int64_t now_ms)
{
    bool progress = shows_progress(rank, sample, now_ms - rank->last_ms);
    rank->last = *sample;
    rank->last_ms = now_ms;
    if (progress)
        hang_rank_moves(rank);
}

bool hang_rank_needs_looks(const struct hang_rank *rank)
{
    return rank->spins || rank->busy || rank->murmurs;
}

bool hang_rank_is_awake(const struct hang_rank *rank)
{
    return rank->sums.main_ns != rank->quiet_sums.main_ns;
}

/* A child or another thread of it works while its main thread waits. */
static bool works_aside(struct hang_rank *rank, const struct hang_look *look)
{
    if (look->main_runs || (look->aside == 0 && !look->unknown))
        return false;
    rank->aside_moves =
        rank->aside_moves || look->unknown || (rank->aside != 0 && rank->aside != look->aside);
    rank->aside = look->aside;
    rank->aside_looks++;
    return rank->aside_moves && rank->aside_looks >= ASIDE_LOOKS;
}

static void take_place(struct hang_rank *rank, uint64_t place)
{
    rank->place_looks = place == rank->place ? rank->place_looks + 1 : 1;
    rank->place = place;
    if (rank->place_looks < STAY_LOOKS)
        return;
    rank->strays = rank->strays || (rank->stayed != 0 && rank->stayed != place);
    rank->stayed = place;
}

static bool look_shows_progress(struct hang_rank *rank, const struct hang_look *look)
{
    bool unknown = look->main == 0, changed = rank->place != 0 && rank->place != look->main;
    if (rank->murmurs && (unknown || changed || look->waits_for_own))
        hang_rank_accept_murmurs(rank);
    if (unknown && rank->spins) { /* so its use of the processor counts */
        moved_till(rank, rank->idle_ms);
        rank->spins = false;
    }
    if (unknown)
        return false;
    if (rank->spins && rank->busy && changed)
        return true;
    if (rank->busy && works_aside(rank, look))
        return true;
    take_place(rank, look->main);
    return rank->busy && rank->strays;
}

void hang_rank_look(struct hang_rank *rank, const struct hang_look *look)
{
    rank->missed = false;
    if (rank->quiet_ms == 0)
        return;
    if (look_shows_progress(rank, look)) {
        hang_rank_moves(rank);
        return;
    }
    rank->looks++;
}
