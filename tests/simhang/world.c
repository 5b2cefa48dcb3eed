/* SPDX-License-Identifier: Apache-2.0 */
#include "simhang/world.h"

#include <stddef.h>

#include "base/strv.h"
#include "model/hang/hang.h"
#include "sim/rng.h"

#define RANKS_MAX 8
#define PHASES_MAX 4
#define SLACK_STEPS (HANG_LOOKS + 4)
#define FIRST_WORKER 1

struct actor {
    struct hang_sample sample;
    int host;
    bool spins;                      /* while it waits */
    bool late;                       /* its last sample was */
    uint64_t idle_mw;                /* of its GPU; 0: it has none */
    uint64_t launches, seen, unseen; /* unseen: while nobody asked */
    uint64_t place;
};

struct world {
    struct rng rng;
    struct hang *hang;
    struct expects *expects; /* NULL: none */
    struct hang_limits limits;
    struct actor ranks[RANKS_MAX];
    int count, mover; /* mover: the rank that makes the progress of a phase */
    uint64_t level;   /* of power */
    int64_t now_ms, period_ms, event_ms, next_event_ms;
    int64_t expect_ms, next_line_ms; /* expect_ms: 0: no line is expected */
    bool line_due;                   /* one has come, and no rank has started since */
    uint64_t workers;                /* the number of the last one that has started */
    struct outcome outcome;
};

static uint64_t some(struct world *world, int64_t low, int64_t high)
{
    return (uint64_t)rng_between(&world->rng, low, high);
}

/* Threads that look at a clock, and library code that polls. */
static void wait_step(struct world *world, struct actor *rank, int64_t ms)
{
    rank->sample.cpu_us +=
        rank->spins ? (uint64_t)ms * some(world, 900, 1000) : (uint64_t)ms * some(world, 0, 5);
    rank->sample.waits += (uint64_t)ms * some(world, 0, rank->spins ? 2 : 10) / 1000;
    rank->sample.io_bytes += some(world, 0, 500);
    rank->sample.faults += rng_chance(&world->rng, 5) ? some(world, 0, 20) : 0;
    rank->place = 7;
}

/* The GPU of one who waits: its power stays nearly the same, whatever its use. */
static void gpu_waits(struct world *world, struct actor *rank)
{
    rank->sample.has_gpu = rank->idle_mw > 0;
    rank->sample.gpu_power_mw = rank->idle_mw + some(world, 0, 2000);
    rank->sample.gpu_memory_use = 0;
}

static bool comes_within(struct world *world, int64_t most_ms)
{
    if (world->now_ms < world->next_event_ms)
        return false;
    world->next_event_ms = world->now_ms + rng_between(&world->rng, 1, most_ms > 1 ? most_ms : 1);
    return true;
}

static bool is_time(struct world *world)
{
    return comes_within(world, world->event_ms);
}

/* Earlier, since nobody asks GPUs and NCCL before the job has been quiet for a while. */
static bool gpu_time(struct world *world)
{
    return comes_within(world, world->event_ms - 6 * world->period_ms);
}

/* The progress of the rank `world->mover` within `ms`. */
static void move_step(struct world *world, enum phase phase, int64_t ms)
{
    struct actor *rank = &world->ranks[world->mover];
    struct hang_sample *sample = &rank->sample;
    rank->place = 1 + some(world, 0, 3);
    switch (phase) {
    case PHASE_TRAIN:
    case PHASE_LOOP:
        sample->cpu_us += (uint64_t)ms * some(world, 400, 1000) + 30000;
        sample->waits += (uint64_t)ms * some(world, 10, 200) / 1000 + 8;
        break;
    case PHASE_PRINT:
        wait_step(world, rank, ms);
        sample->output += is_time(world) ? some(world, 1, 100) : 0;
        break;
    case PHASE_OPERATIONS:
        wait_step(world, rank, ms);
        sample->operations += is_time(world) ? 1 : 0;
        break;
    case PHASE_CHECKPOINT:
        sample->cpu_us += (uint64_t)ms * some(world, 0, 300);
        sample->io_bytes += is_time(world) ? some(world, 4096, 1 << 30) : 0;
        break;
    case PHASE_LOAD:
        sample->cpu_us += (uint64_t)ms * some(world, 0, 3);
        sample->io_bytes += some(world, 4096, 65536);
        break;
    case PHASE_RECEIVE:
        sample->cpu_us += (uint64_t)ms * some(world, 0, 9);
        sample->faults += 64 + (uint64_t)ms * some(world, 16, 300) / 1000;
        break;
    case PHASE_COMPILE:
        sample->cpu_us += (uint64_t)ms * some(world, 900, 4000);
        sample->faults += 64 + (uint64_t)ms * some(world, 20, 5000) / 1000;
        break;
    case PHASE_COMPUTE: sample->cpu_us += (uint64_t)ms * some(world, 500, 1000) + 30000; break;
    case PHASE_NATIVE:
        sample->cpu_us += (uint64_t)ms * some(world, 500, 1000) + 30000;
        rank->place = 0;
        break;
    case PHASE_KERNEL:
        wait_step(world, rank, ms);
        sample->has_gpu = true;
        sample->gpu_power_mw = some(world, 600000, 602000);
        sample->gpu_memory_use = (uint32_t)some(world, 1, 100);
        break;
    case PHASE_POWER:
        wait_step(world, rank, ms);
        sample->has_gpu = true;
        sample->gpu_memory_use = 0;
        /* Two changes, the first of them in a sample that is late, must not cancel out. */
        world->level += gpu_time(world) ? some(world, 1, 2) : 0;
        sample->gpu_power_mw = some(world, 0, 2000) + 120000 + world->level % 5 * 80000;
        break;
    case PHASE_NCCL:
        wait_step(world, rank, ms);
        rank->launches += gpu_time(world) ? 1 : 0;
        break;
    case PHASE_RESTART:
        wait_step(world, rank, ms);
        if (is_time(world)) {
            *sample = (struct hang_sample){.cpu_us = some(world, 0, 100000)};
            hang_seat(world->hang, world->mover, ++world->workers);
            world->line_due = false;
        }
        break;
    case PHASE_DEBUG: sample->debugged = true; break;
    case PHASE_STALL:
    case PHASE_SUSPEND:
    case PHASE_HANG:
    case PHASES: break;
    }
}

/* In time, by the mover's own clock: one that is held prints the line later. */
static void print_line(struct world *world, enum phase phase, int64_t ms)
{
    static const char line[] = "step\n";
    int64_t most = world->expect_ms - 4 * world->period_ms;
    if (world->expects == NULL || phase == PHASE_HANG || phase == PHASE_LOOP)
        return;
    if (phase == PHASE_STALL || phase == PHASE_DEBUG)
        world->next_line_ms += ms;
    if (phase == PHASE_SUSPEND || world->now_ms < world->next_line_ms)
        return;
    expects_bytes(world->expects, world->mover, 0, line, sizeof(line) - 1, world->now_ms);
    world->line_due = true;
    world->next_line_ms = world->now_ms + (most > 0 ? rng_between(&world->rng, 0, most) : 0);
}

/* A frame can be late, too, but not one after the other. */
static bool answers(struct world *world, struct actor *rank, enum phase phase)
{
    bool stalled = phase == PHASE_STALL && rank->host == world->ranks[world->mover].host;
    rank->late = !rank->late && rng_chance(&world->rng, 1);
    return !stalled && !rank->late;
}

/* Without `more`, nobody has asked the GPU and NCCL. The launches count from the first answer. */
static void send_sample(struct world *world, int i, bool more)
{
    struct actor *rank = &world->ranks[i];
    struct hang_sample sample = rank->sample;
    sample.has_gpu = sample.has_gpu && more;
    if (!more)
        rank->unseen = rank->launches - rank->seen;
    rank->seen = rank->launches - rank->unseen;
    sample.operations += rank->seen;
    hang_sample(world->hang, i, &sample, world->now_ms);
}

static void step(struct world *world, enum phase phase)
{
    int64_t ms = world->period_ms + rng_between(&world->rng, 0, world->period_ms / 10);
    world->now_ms += phase == PHASE_SUSPEND ? 0 : ms; /* the driver's clock stands still */
    print_line(world, phase, ms);
    bool more = hang_wants_more(world->hang, world->now_ms);
    for (int i = 0; i < world->count; i++) {
        struct actor *rank = &world->ranks[i];
        bool mover = phase != PHASE_HANG && i == world->mover;
        rank->sample.debugged = false;
        gpu_waits(world, rank);
        if (phase == PHASE_SUSPEND)
            continue;
        if (phase == PHASE_TRAIN || phase == PHASE_LOOP || mover) {
            int chosen = world->mover;
            world->mover = i;
            move_step(world, phase, ms);
            world->mover = chosen;
        } else {
            wait_step(world, rank, ms);
        }
        if (answers(world, rank, phase))
            send_sample(world, i, more);
    }
    world->outcome.steps++;
}

static void judge(struct world *world, enum phase phase, bool is_hang, enum hang_news news)
{
    if (news == HANG_LOOK) {
        for (int i = 0; i < world->count; i++)
            hang_place(world->hang, i, world->ranks[i].place);
    }
    bool verdict = news == HANG_FOUND || news == HANG_WARNING;
    if (verdict && !is_hang && world->outcome.problem == NULL) {
        world->outcome.problem = news == HANG_FOUND ? "a false verdict" : "a false warning";
        world->outcome.phase = phase;
    }
}

static void pass(struct world *world, enum phase phase, enum phase lie)
{
    int64_t longest = world->limits.hang_ms > world->limits.warning_ms ? world->limits.hang_ms
                                                                       : world->limits.warning_ms;
    int64_t until = world->now_ms + rng_between(&world->rng, longest / 4, longest * 2);
    int64_t steps = (until - world->now_ms) / world->period_ms;
    bool unseen =
        phase == PHASE_POWER || phase == PHASE_NCCL; /* the first event, before they ask */
    world->ranks[world->mover].sample.output += unseen ? 1 : 0;
    for (; steps > 0 && world->outcome.problem == NULL; steps--) {
        step(world, phase);
        judge(world, phase, phase == lie, hang_tick(world->hang, world->now_ms));
    }
}

static int64_t least(int64_t a, int64_t b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

/* What must come, and the limit for it. */
static enum hang_news wanted(const struct world *world, enum phase phase, int64_t *limit)
{
    int64_t due = world->line_due ? world->expect_ms : 0;
    int64_t found = phase == PHASE_LOOP ? due : least(world->limits.hang_ms, due);
    *limit = found > 0 ? found : world->limits.warning_ms;
    return found > 0 ? HANG_FOUND : HANG_WARNING;
}

/* From now on all wait, or the line does not come. What must come comes within the limit, and the
 * time to look at those that spin. */
static void end_in_a_hang(struct world *world, enum phase phase, enum phase lie)
{
    int64_t limit;
    enum hang_news news = HANG_NOTHING, last = wanted(world, phase, &limit);
    int64_t begun = world->now_ms, steps = limit / world->period_ms + SLACK_STEPS;
    world->outcome.hung = true;
    for (; steps > 0 && world->outcome.problem == NULL && news != last; steps--) {
        step(world, phase);
        news = hang_tick(world->hang, world->now_ms);
        judge(world, phase, lie != PHASE_HANG && lie != PHASE_LOOP, news);
    }
    world->outcome.late_ms = world->now_ms - begun - limit;
    if (news == last || world->outcome.problem != NULL)
        return;
    world->outcome.problem = "a hang was not found within the limit";
    world->outcome.phase = phase;
}

static void expect_lines(struct world *world, int64_t limit)
{
    struct strv texts AUTO_STRV = STRV_INIT;
    struct error err = ERROR_INIT;
    world->expect_ms = rng_between(&world->rng, limit / 2, limit * 2);
    strv_printf(&texts, "^step$:%lldms", (long long)world->expect_ms);
    expects_create(&texts, "--expect", &world->expects, &err);
}

static void init(struct world *world, uint64_t seed)
{
    *world = (struct world){.rng = rng_stream(seed, 1), .now_ms = 1000};
    int which = rng_below(&world->rng, 3);
    int64_t limit = rng_between(&world->rng, 1000, 1800000);
    world->limits.hang_ms = which != 0 ? limit : 0;
    world->limits.warning_ms = which != 1 ? rng_between(&world->rng, limit / 2, limit * 2) : 0;
    if (rng_chance(&world->rng, 50))
        expect_lines(world, limit);
    world->hang = hang_create(&world->limits, world->expects);
    world->period_ms = hang_period_ms(world->hang);
    int64_t shortest = least(world->limits.hang_ms, world->limits.warning_ms);
    world->event_ms = shortest - 4 * world->period_ms > 1 ? shortest - 4 * world->period_ms : 1;
    world->workers = FIRST_WORKER;
    world->count = 1 + rng_below(&world->rng, RANKS_MAX);
    for (int i = 0; i < world->count; i++) {
        world->ranks[i].host = rng_below(&world->rng, 3);
        world->ranks[i].idle_mw = rng_chance(&world->rng, 50) ? some(world, 40000, 200000) : 0;
        hang_seat(world->hang, i, FIRST_WORKER);
    }
}

struct outcome world_run(uint64_t seed, enum phase lie)
{
    struct world world;
    init(&world, seed);
    enum phase phase = PHASE_TRAIN;
    for (int i = 0; i < PHASES_MAX && world.outcome.problem == NULL; i++) {
        phase = i == 0 ? PHASE_TRAIN : (enum phase)rng_below(&world.rng, PHASE_LOOP);
        world.mover = rng_below(&world.rng, world.count);
        world.next_event_ms = 0;
        for (int j = 0; j < world.count; j++)
            world.ranks[j].spins = rng_chance(&world.rng, 40);
        pass(&world, phase, lie);
    }
    enum phase last = world.line_due && rng_chance(&world.rng, 50) ? PHASE_LOOP : PHASE_HANG;
    if (world.outcome.problem == NULL && rng_chance(&world.rng, 60))
        end_in_a_hang(&world, lie < PHASE_LOOP ? lie : last, lie);
    hang_destroy(world.hang);
    expects_destroy(world.expects);
    return world.outcome;
}
