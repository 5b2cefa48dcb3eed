/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watch for hangs, with --on-hang restart: when a member hangs, all others wait for it in a
 * collective. After the limit, the driver tells the core which rank that is, or that it does not
 * know. It does not judge before the members have begun, or while a host does not answer.
 */
#include "sim/world.h"

#define NOBODY_PERCENT 10 /* no rank stands out */
#define AGAIN_MS 1000

static void look_in(struct world *world, int64_t delay_ms)
{
    const struct sim_comm *comm = &world->comm;
    if (world->schedule->hang_ms > 0 && comm->steady && !comm->broken && !comm->done)
        world_add(world, &(struct task){.at_ms = world->now_ms + delay_ms,
                                        .kind = TASK_HANG,
                                        .epoch = comm->epoch});
}

void hangs_look_later(struct world *world)
{
    look_in(world, world->schedule->hang_ms);
}

/* -1: none. */
static int find_hung(const struct world *world)
{
    for (int uid = 0; uid < world->worker_count; uid++) {
        const struct sim_worker *worker = &world->workers[uid];
        if (worker->alive && worker->hung && worker->comm == world->comm.epoch)
            return uid;
    }
    return -1;
}

static bool some_host_is_silent(const struct world *world)
{
    bool silent = false;
    for (int m = 0; m < world->started.size; m++) {
        const struct sim_host *host =
            &world->hosts[world->by_number[world->started.members[m].host]];
        silent = silent || !host->up || world->now_ms < host->silent_until_ms;
    }
    return silent;
}

void hangs_task(struct world *world, const struct task *task)
{
    const struct sim_comm *comm = &world->comm;
    const int uid = find_hung(world);
    if (task->epoch != comm->epoch || comm->broken || comm->done || uid < 0 || world->verdict)
        return;
    if (some_host_is_silent(world)) {
        look_in(world, AGAIN_MS);
        return;
    }
    const bool known = !rng_chance(&world->rng, NOBODY_PERCENT);
    const int seat = known ? world->workers[uid].seat : -1;
    world_tell(world, &(struct elastic_event){.kind = ELASTIC_HUNG, .seat = seat});
    hangs_look_later(world); /* the core may be busy with a change */
}
