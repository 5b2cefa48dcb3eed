/* SPDX-License-Identifier: Apache-2.0 */
#include "simhang/world.h"

#include <stddef.h>

#include "base/strv.h"
#include "simhang/rank.h"

#define RANKS_MAX 8
#define PHASES_MAX 4
#define SLACK_STEPS (HANG_LOOKS + HANG_SUM_STEPS + 4)
#define HANG_SUM_STEPS 10 /* a rank that worked is seen as busy for so long */
#define FIRST_WORKER 1

struct world {
    struct rng rng;
    struct scene scene;
    struct hang *hang;
    struct expects *expects; /* NULL: none */
    struct hang_limits limits;
    struct rank ranks[RANKS_MAX];
    int count, mover; /* mover: the rank that makes the progress of a phase */
    int64_t event_ms, next_event_ms;
    int64_t expect_ms, next_line_ms; /* expect_ms: 0: no line is expected */
    bool line_due;                   /* one has come, and no rank has started since */
    uint64_t workers;                /* the number of the last one that has started */
    struct outcome outcome;
};

static bool comes_within(struct world *world, int64_t most_ms)
{
    if (world->scene.now_ms < world->next_event_ms)
        return false;
    world->next_event_ms =
        world->scene.now_ms + rng_between(&world->rng, 1, most_ms > 1 ? most_ms : 1);
    return true;
}

/* Whether what happens now and then in this phase happens now. Nobody asks GPUs and NCCL before the
 * job has been quiet for a while, so these move more often. */
static bool event_comes(struct world *world, enum phase phase)
{
    bool asked_late = phase == PHASE_POWER || phase == PHASE_NCCL;
    if (phase == PHASE_CALLS) /* looks begin in the second half of the limit */
        return comes_within(world, world->scene.limit_ms / 2 - 6 * world->scene.period_ms);
    return comes_within(world, world->event_ms - (asked_late ? 6 * world->scene.period_ms : 0));
}

/* The rank on this seat ends, and another worker takes it. */
static void restart(struct world *world, int seat)
{
    struct rank *rank = &world->ranks[seat];
    rank->sample = (struct hang_sample){.cpu_us = (uint64_t)rng_between(&world->rng, 0, 100000),
                                        .main_ns = 1000000};
    rank->gone = false;
    hang_seat(world->hang, seat, ++world->workers);
    world->line_due = false;
}

static void leave(struct world *world, int seat)
{
    world->ranks[seat].gone = true;
    hang_seat(world->hang, seat, 0);
    world->line_due = false;
}

/* For how many samples at the end of a phase the mover has left: less than any limit. */
static int64_t steps_without(const struct world *world, enum phase phase, int64_t steps)
{
    int64_t most = world->scene.limit_ms / world->scene.period_ms / 2;
    if (phase != PHASE_LEAVE)
        return -1;
    return steps / 2 < most ? steps / 2 : most;
}

/* Those that take part in the progress of a phase: one, a half, or all. */
static bool takes_part(const struct world *world, enum phase phase, int seat)
{
    switch (phase) {
    case PHASE_TRAIN:
    case PHASE_STEPS:
    case PHASE_LOOP: return true;
    case PHASE_WANDER:
        return (seat - world->mover + world->count) % world->count < (world->count + 1) / 2;
    case PHASE_START:
    case PHASE_HANG: return false;
    default: return seat == world->mover;
    }
}

static void act(struct world *world, enum phase phase, int seat, bool event)
{
    struct rank *rank = &world->ranks[seat];
    rank->sample.held = rank->sample.has_gpu = false;
    if (rank->idle_mw > 0) { /* the power of one that waits stays nearly the same */
        rank->sample.has_gpu = true;
        rank->sample.gpu_power_mw = rank->idle_mw + (uint64_t)rng_between(&world->rng, 0, 2000);
        rank->sample.gpu_memory_use = 0;
    }
    if (phase == PHASE_SUSPEND || phase == PHASE_START)
        return;
    bool moves = takes_part(world, phase, seat) && rank_moves(&world->scene, rank, phase, event);
    if (!moves)
        rank_waits(&world->scene, rank);
    if (phase == PHASE_RESTART && seat == world->mover && event)
        restart(world, seat);
}

/* In time, by the mover's own clock: one that is held prints the line later. */
static void print_line(struct world *world, enum phase phase, int64_t ms)
{
    static const char line[] = "step\n";
    int64_t most = world->expect_ms - 4 * world->scene.period_ms;
    if (world->expects == NULL || phase >= PHASE_START)
        return;
    if (phase == PHASE_STALL || phase == PHASE_DEBUG || phase == PHASE_PAGER)
        world->next_line_ms += ms;
    if (phase == PHASE_SUSPEND || world->scene.now_ms < world->next_line_ms ||
        world->ranks[world->mover].gone)
        return;
    expects_bytes(world->expects, world->mover, 0, line, sizeof(line) - 1, world->scene.now_ms);
    world->line_due = true;
    world->next_line_ms = world->scene.now_ms + (most > 0 ? rng_between(&world->rng, 0, most) : 0);
}

/* A frame can be late, too, but not one after the other. */
static bool answers(struct world *world, struct rank *rank, enum phase phase)
{
    bool stalled = phase == PHASE_STALL && rank->host == world->ranks[world->mover].host;
    rank->late = !rank->late && rng_chance(&world->rng, 1);
    return !stalled && !rank->late;
}

/* Without `more`, nobody has asked the GPU, NCCL and for the system call. The launches count from
 * the first answer. */
static void send_sample(struct world *world, int i, bool more)
{
    struct rank *rank = &world->ranks[i];
    struct hang_sample sample = rank->sample;
    bool whole = more && !world->scene.nccl && !rng_chance(&world->rng, 10);
    sample.tcp_data = whole ? sample.tcp_data : 0; /* of too many files, it is not known */
    sample.has_gpu = sample.has_gpu && more;
    sample.receivers = more ? rank->receivers : 0;
    sample.receptions = sample.receivers != 0 ? rank->receptions : 0;
    if (!more)
        rank->unseen = rank->launches - rank->seen;
    rank->seen = rank->launches - rank->unseen;
    sample.operations += rank->seen;
    hang_sample(world->hang, i, &sample, world->scene.now_ms);
}

static void step(struct world *world, enum phase phase)
{
    struct scene *scene = &world->scene;
    scene->ms = scene->period_ms + rng_between(&world->rng, 0, scene->period_ms / 10);
    scene->now_ms += phase == PHASE_SUSPEND ? 0 : scene->ms; /* the driver's clock stands still */
    print_line(world, phase, scene->ms);
    bool more = hang_wants_more(world->hang, scene->now_ms), event = event_comes(world, phase);
    for (int i = 0; i < world->count; i++) {
        if (world->ranks[i].gone)
            continue;
        act(world, phase, i, event);
        if (phase != PHASE_SUSPEND && answers(world, &world->ranks[i], phase))
            send_sample(world, i, more);
    }
    world->outcome.steps++;
}

static void judge(struct world *world, enum phase phase, bool is_hang, enum hang_news news)
{
    if (news == HANG_LOOK) {
        for (int i = 0; i < world->count; i++) {
            if (!world->ranks[i].missed)
                hang_looked(world->hang, i, &world->ranks[i].look);
        }
    }
    bool verdict = news == HANG_FOUND || news == HANG_WARNING;
    if (verdict && !is_hang && world->outcome.problem == NULL) {
        world->outcome.problem = news == HANG_FOUND ? "a false verdict" : "a false warning";
        world->outcome.phase = phase;
    }
}

/* How each rank waits in this phase. */
static void choose_waits(struct world *world, enum phase phase)
{
    bool hangs = phase == PHASE_HANG, spin = false;
    for (int i = 0; i < world->count; i++) {
        struct rank *rank = &world->ranks[i];
        rank->wait = (enum wait)rng_below(&world->rng, WAITS);
        rank->next_ms = 0;
        rank->readable = rank->wait == WAIT_SPINS || rank->wait == WAIT_CALL ||
                         rank->wait == WAIT_MURMURS || rng_chance(&world->rng, 80);
        spin = spin || rank->wait == WAIT_SPINS || rank->wait == WAIT_CALL;
        if (!hangs && takes_part(world, phase, i))
            rank->wait = WAIT_ASLEEP;
    }
    int retries = 0;
    for (int i = 0; i < world->count; i++) {
        struct rank *rank = &world->ranks[i];
        bool retry = rank->wait == WAIT_RETRIES && 2 * (retries + 1) < world->count;
        /* What looks as if a half of them worked is not simulated, and neither is a logger beside
         * one that may compute. */
        if ((hangs && rank->wait == WAIT_MURMURS && spin) || (rank->wait == WAIT_RETRIES && !retry))
            rank->wait = WAIT_ASLEEP;
        retries += retry;
    }
}

static void pass(struct world *world, enum phase phase, enum phase lie)
{
    struct scene *scene = &world->scene;
    int64_t longest = world->limits.hang_ms > world->limits.warning_ms ? world->limits.hang_ms
                                                                       : world->limits.warning_ms;
    int64_t until = scene->now_ms + rng_between(&world->rng, longest / 4, longest * 2);
    int64_t steps = (until - scene->now_ms) / scene->period_ms;
    choose_waits(world, phase);
    for (int i = 0; i < world->count; i++) { /* each phase begins with progress */
        world->ranks[i].sample.output += phase != PHASE_START && takes_part(world, phase, i);
        world->ranks[i].sample.main_ns++;
    }
    int64_t without = steps_without(world, phase, steps);
    for (; steps > 0 && world->outcome.problem == NULL; steps--) {
        if (steps == without)
            leave(world, world->mover);
        step(world, phase);
        judge(world, phase, phase == lie, hang_tick(world->hang, scene->now_ms));
    }
    if (world->ranks[world->mover].gone)
        restart(world, world->mover);
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
    int64_t begun = world->scene.now_ms, steps = limit / world->scene.period_ms + SLACK_STEPS;
    world->outcome.hung = true;
    choose_waits(world, phase);
    if (phase != PHASE_START) { /* one that has just been started may have done nothing yet */
        world->ranks[world->mover].sample.output++;
        world->ranks[world->mover].sample.main_ns++;
    }
    for (; steps > 0 && world->outcome.problem == NULL && news != last; steps--) {
        step(world, phase);
        news = hang_tick(world->hang, world->scene.now_ms);
        judge(world, phase, lie != PHASE_HANG && lie != PHASE_LOOP, news);
    }
    world->outcome.late_ms = world->scene.now_ms - begun - limit;
    world->outcome.late_steps = world->outcome.late_ms / world->scene.period_ms;
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
    *world = (struct world){.rng = rng_stream(seed, 1), .scene = {.now_ms = 1000}};
    int which = rng_below(&world->rng, 3);
    int64_t limit = rng_between(&world->rng, 1000, 1800000);
    world->scene.rng = &world->rng;
    world->scene.nccl = rng_chance(&world->rng, 50);
    world->limits.hang_ms = which != 0 ? limit : 0;
    world->limits.warning_ms = which != 1 ? rng_between(&world->rng, limit / 2, limit * 2) : 0;
    if (rng_chance(&world->rng, 50))
        expect_lines(world, limit);
    world->hang = hang_create(&world->limits, world->expects);
    world->scene.period_ms = hang_period_ms(world->hang);
    world->scene.limit_ms = least(world->limits.hang_ms, world->limits.warning_ms);
    int64_t most = world->scene.limit_ms - 4 * world->scene.period_ms;
    world->event_ms = most > 1 ? most : 1;
    world->workers = FIRST_WORKER;
    world->count = 1 + rng_below(&world->rng, RANKS_MAX);
    for (int i = 0; i < world->count; i++) {
        struct rank *rank = &world->ranks[i];
        rank->host = rng_below(&world->rng, 3);
        rank->idle_mw =
            rng_chance(&world->rng, 50) ? (uint64_t)rng_between(&world->rng, 40000, 200000) : 0;
        rank->sample = (struct hang_sample){.io_bytes = 8000, .cpu_us = 10000, .main_ns = 10000000};
        hang_seat(world->hang, i, FIRST_WORKER);
    }
}

/* The first phase: the ranks begin, soon or late. */
static enum phase first_phase(struct world *world, enum phase lie)
{
    return lie == PHASE_START || rng_chance(&world->rng, 20) ? PHASE_START : PHASE_TRAIN;
}

struct outcome world_run(uint64_t seed, enum phase lie)
{
    struct world world;
    init(&world, seed);
    enum phase phase = PHASE_TRAIN;
    int phases = lie == PHASE_START ? 1 : PHASES_MAX; /* it is the first, or none */
    for (int i = 0; i < phases && world.outcome.problem == NULL; i++) {
        phase = i == 0 ? first_phase(&world, lie) : (enum phase)rng_below(&world.rng, PHASE_START);
        world.mover = rng_below(&world.rng, world.count);
        world.next_event_ms = 0;
        pass(&world, phase, lie);
    }
    enum phase last = world.line_due && rng_chance(&world.rng, 50) ? PHASE_LOOP : PHASE_HANG;
    if (world.outcome.problem == NULL && rng_chance(&world.rng, 60))
        end_in_a_hang(&world, lie < PHASE_LOOP ? lie : last, lie);
    hang_destroy(world.hang);
    expects_destroy(world.expects);
    return world.outcome;
}
