/* SPDX-License-Identifier: Apache-2.0 */
#include "simhang/rank.h"

#define PLACE 7 /* of one who waits */
#define RETRY_PLACES 3

static uint64_t some(struct scene *scene, int64_t low, int64_t high)
{
    return (uint64_t)rng_between(scene->rng, low, high);
}

static uint64_t some_ms(struct scene *scene, int64_t low, int64_t high)
{
    return (uint64_t)scene->ms * some(scene, low, high);
}

/* How often something happens in this sample that happens so often in 1000 s. */
static uint64_t at_rate(struct scene *scene, struct rank *rank, int64_t rate)
{
    rank->part += scene->ms * rate;
    int64_t count = rank->part / 1000000;
    rank->part %= 1000000;
    return (uint64_t)count;
}

/* How often it happens if a time between these two passes in between. */
static uint64_t now_and_then(struct scene *scene, struct rank *rank, int64_t low, int64_t high)
{
    uint64_t count = 0;
    if (rank->next_ms < scene->now_ms - scene->ms)
        rank->next_ms = scene->now_ms - rng_between(scene->rng, 0, scene->ms);
    for (; rank->next_ms <= scene->now_ms; count++)
        rank->next_ms += rng_between(scene->rng, low, high);
    return count;
}

/* Its main thread runs for a moment. */
static void wake(struct rank *rank, uint64_t times)
{
    rank->sample.waits += times;
    rank->sample.main_ns += times * 50000;
}

static void retry(struct scene *scene, struct rank *rank)
{
    if (now_and_then(scene, rank, scene->period_ms * 3, scene->period_ms * 8) > 0)
        rank->place = PLACE + some(scene, 0, RETRY_PLACES - 1);
    rank->look.main = rank->place;
    wake(rank, some(scene, 1, 3));
}

static void murmur(struct scene *scene, struct rank *rank)
{
    uint64_t times = now_and_then(scene, rank, 200, 10000);
    rank->sample.output += times * some(scene, 0, 90);
    rank->sample.io_bytes += times * some(scene, 0, 300);
    rank->look.aside = times > 0 && rng_chance(scene->rng, 5) ? some(scene, 20, 22) : 0;
}

static void poll(struct scene *scene, struct rank *rank)
{
    bool was_elsewhere = rank->place == PLACE + 1;
    rank->place = !was_elsewhere && rng_chance(scene->rng, 1) ? PLACE + 1 : PLACE;
    rank->look.main = rank->place;
    rank->sample.cpu_us += some_ms(scene, 0, 9);
    wake(rank, some_ms(scene, 1, 100) / 1000 + 1);
}

/* What threads do that look at a clock. */
static void tick(struct scene *scene, struct rank *rank)
{
    rank->sample.cpu_us += some_ms(scene, 0, 5);
    rank->sample.io_bytes += some_ms(scene, 0, 50) / 1000;
    rank->sample.faults += rng_chance(scene->rng, 5) ? some(scene, 0, 1 + scene->ms / 1000) : 0;
}

void rank_waits(struct scene *scene, struct rank *rank)
{
    uint64_t times;
    rank->look = (struct hang_look){.main = PLACE};
    rank->missed = false;
    rank->receivers = 0;
    switch (rank->wait) {
    case WAIT_ASLEEP: tick(scene, rank); break;
    case WAIT_CALL: rank->missed = rng_chance(scene->rng, 2); /* fall through */
    case WAIT_SPINS:
        rank->sample.cpu_us += some_ms(scene, 900, 1000);
        rank->sample.main_ns += some_ms(scene, 900000, 1000000);
        rank->sample.waits += some_ms(scene, 0, 2) / 1000;
        rank->look.main_runs = true;
        break;
    case WAIT_POLLS: poll(scene, rank); break;
    case WAIT_RETRIES: retry(scene, rank); break;
    case WAIT_MURMURS: murmur(scene, rank); break;
    case WAIT_HEARTBEAT:
        rank->receivers = 9;
        times = at_rate(scene, rank, 60);
        rank->receptions += times;
        wake(rank, times);
        tick(scene, rank);
        break;
    case WAIT_ASKED:
        rank->sample.tcp_data += scene->nccl ? some(scene, 120, 1 << 20) : 0;
        tick(scene, rank);
        break;
    case WAITS: break;
    }
    if (!rank->readable)
        rank->look.main = 0;
}

/* So many microseconds of each millisecond that a short limit sees more than a tick of them. */
static int64_t least_use(const struct scene *scene)
{
    int64_t least = 100000 / scene->limit_ms;
    return least > 20 ? least : 20;
}

/* So many bytes in 1000 s that they are enough for progress well within the limit. */
static int64_t least_bytes(const struct scene *scene)
{
    int64_t least = INT64_C(8192) * 1000000 / scene->limit_ms;
    return least > 80000 ? least : 80000;
}

static void compute_aside(struct scene *scene, struct rank *rank, bool python)
{
    bool there = rng_chance(scene->rng, 70);
    rank->look = (struct hang_look){.main = PLACE, .waits_for_own = rng_chance(scene->rng, 50)};
    rank->look.aside = there && python ? 30 + some(scene, 0, 3) : 0;
    rank->look.unknown = there && !python;
    rank->sample.cpu_us += some_ms(scene, least_use(scene), 1000);
}

/* Sleeps, and then talks to the others for a moment. */
static void take_steps(struct scene *scene, struct rank *rank)
{
    int64_t longest = scene->limit_ms / 8 < 4000 ? scene->limit_ms / 8 : 4000;
    uint64_t steps = now_and_then(scene, rank, longest / 8 + 1, longest);
    rank->sample.io_bytes += steps * (uint64_t)(least_bytes(scene) * (longest + 1) / 1000000 +
                                                rng_between(scene->rng, 1, 900));
    rank->sample.cpu_us += steps * some(scene, 100, 1000);
    rank->look = (struct hang_look){.main = PLACE};
    wake(rank, 2 * steps);
}

static void download(struct scene *scene, struct rank *rank)
{
    int64_t least = 7000000 / scene->limit_ms;
    uint64_t times =
        at_rate(scene, rank, rng_between(scene->rng, least > 150 ? least : 150, 50000));
    rank->receivers = 9;
    rank->receptions += times;
    rank->look = (struct hang_look){.main = PLACE};
    wake(rank, times);
}

/* One who waits as one in a system call, and something else happens. */
static void quietly(struct scene *scene, struct rank *rank)
{
    rank->wait = WAIT_ASLEEP;
    rank_waits(scene, rank);
    wake(rank, 1);
}

static bool moves_gpu(struct scene *scene, struct rank *rank, enum phase phase, bool event)
{
    struct hang_sample *sample = &rank->sample;
    quietly(scene, rank);
    sample->has_gpu = true;
    sample->gpu_memory_use = phase == PHASE_KERNEL ? (uint32_t)some(scene, 1, 100) : 0;
    /* Two changes, the first of them in a sample that is late, must not cancel out. */
    rank->place += phase == PHASE_POWER && event ? some(scene, 1, 2) : 0;
    uint64_t level = phase == PHASE_KERNEL ? 6 : rank->place % 5;
    sample->gpu_power_mw = some(scene, 0, 2000) + 120000 + level * 80000;
    return true;
}

/* What the processor and the memory show. */
static bool works(struct scene *scene, struct rank *rank, enum phase phase, bool event)
{
    struct hang_sample *sample = &rank->sample;
    rank->look = (struct hang_look){.main = 1 + some(scene, 0, 3), .main_runs = true};
    sample->main_ns += 100000;
    switch (phase) {
    case PHASE_TRAIN:
    case PHASE_LOOP:
        sample->cpu_us += some_ms(scene, 400, 1000) + 30000;
        sample->waits += some_ms(scene, 10, 200) / 1000 + 8;
        return true;
    case PHASE_LOAD:
        sample->cpu_us += some_ms(scene, 0, 3);
        sample->io_bytes += some(scene, 4096, 65536);
        return true;
    case PHASE_RECEIVE:
        sample->cpu_us += some_ms(scene, 0, 9);
        sample->faults += 64 + some_ms(scene, 16, 300) / 1000;
        return true;
    case PHASE_COMPILE:
        sample->cpu_us += some_ms(scene, 900, 4000);
        sample->faults += 64 + some_ms(scene, 20, 5000) / 1000;
        return true;
    case PHASE_CALLS: /* each call has a number of its own */
        rank->place += event ? 1 : 0;
        rank->look.main = 100 + rank->place;
        sample->cpu_us += some_ms(scene, 900, 1000) + 30000;
        return true;
    case PHASE_NATIVE: rank->look.main = 0; /* fall through */
    case PHASE_COMPUTE: sample->cpu_us += some_ms(scene, 500, 1000) + 30000; return true;
    default: return false;
    }
}

bool rank_moves(struct scene *scene, struct rank *rank, enum phase phase, bool event)
{
    struct hang_sample *sample = &rank->sample;
    rank->missed = false;
    if (works(scene, rank, phase, event))
        return true;
    rank->look = (struct hang_look){.main = PLACE};
    switch (phase) {
    case PHASE_STEPS: take_steps(scene, rank); return true;
    case PHASE_WANDER:
        if (now_and_then(scene, rank, scene->period_ms * 3, scene->period_ms * 8) > 0)
            rank->place++;
        rank->look.main = 40 + rank->place;
        wake(rank, 1);
        return true;
    case PHASE_PRINT:
    case PHASE_LEAVE:
        quietly(scene, rank);
        sample->output += event ? some(scene, 1, 100) : 0;
        return true;
    case PHASE_HELPER:
        rank->look.waits_for_own = true;
        sample->output += event ? some(scene, 1, 100) : 0;
        return true;
    case PHASE_OPERATIONS:
        quietly(scene, rank);
        sample->operations += event ? 1 : 0;
        return true;
    case PHASE_CHECKPOINT:
        wake(rank, 1);
        sample->cpu_us += some_ms(scene, 0, 300);
        sample->io_bytes += event ? some(scene, 4096, 1 << 30) : 0;
        return true;
    case PHASE_TRICKLE:
        wake(rank, 1);
        sample->io_bytes += at_rate(scene, rank, least_bytes(scene));
        return true;
    case PHASE_FETCH:
        if (scene->nccl)
            download(scene, rank);
        sample->tcp_data += (uint64_t)scene->ms * 70 + some(scene, 65536, 1 << 20);
        return true;
    case PHASE_DOWNLOAD: download(scene, rank); return true;
    case PHASE_ASIDE: compute_aside(scene, rank, true); return true;
    case PHASE_PROGRAM: compute_aside(scene, rank, false); return true;
    case PHASE_KERNEL:
    case PHASE_POWER: return moves_gpu(scene, rank, phase, event);
    case PHASE_NCCL:
        quietly(scene, rank);
        rank->launches += event ? 1 : 0;
        return true;
    case PHASE_DEBUG:
    case PHASE_PAGER: sample->held = true; return true;
    default: return false;
    }
}
