/* SPDX-License-Identifier: Apache-2.0 */
/* What must be true between two events: deadlines, growth, and the core's view of the world. */
#include <string.h>

#include "sim/world.h"

static int64_t longest_grace(const struct elastic_config *config)
{
    return config->orderly_grace_ms > config->grace_ms ? config->orderly_grace_ms
                                                       : config->grace_ms;
}

/* Longest stay in a state that has a limit; -1: none. Hosts and workers add limits of their own. */
static int64_t longest(const struct world *world, enum elastic_state state)
{
    const struct elastic_config *config = &world->schedule->config;
    const int64_t slack_ms = 5000;
    switch (state) {
    case ELASTIC_PREPARING: return config->prepare_timeout_ms + slack_ms;
    case ELASTIC_STOPPING: return longest_grace(config) + config->patience_ms + slack_ms;
    case ELASTIC_ENDING: return config->grace_ms + config->patience_ms + slack_ms;
    case ELASTIC_AGREEING:
        return 2 * config->rejoin_timeout_ms + config->grace_ms + 2 * config->patience_ms +
               slack_ms;
    case ELASTIC_WAITING:
        return (world->newcomers_awaited ? config->patience_ms : config->elastic_timeout_ms) +
               slack_ms;
    default: return -1;
    }
}

/* A wait for hosts begins anew when newcomers have ended while there were enough slots. */
static void check_stay(struct world *world)
{
    const int64_t limit_ms = longest(world, world->state_before);
    const bool anew = world->state_before == ELASTIC_WAITING && !world->newcomers_awaited &&
                      world->waiting_since_ms > world->state_since_ms;
    const int64_t since_ms = anew ? world->waiting_since_ms : world->state_since_ms;
    const int64_t stay_ms = world->core_last_ms - since_ms;
    if (limit_ms >= 0 && stay_ms > limit_ms && !world->jumped)
        world_problem(world, INV_LAST, "%lld ms in state '%s'", (long long)stay_ms,
                      elastic_state_name(world->state_before));
}

/* More slots are up than the running epoch uses, and nothing stands in the way of using them. */
static bool could_grow(struct world *world)
{
    const struct elastic_config *config = &world->schedule->config;
    const struct sim_plan *plan = &world->started;
    if (world->verdict || world->state_before != ELASTIC_RUNNING || !world->resumed ||
        config->spares > 0 || (config->max_np > 0 && plan->size >= config->max_np) ||
        (config->reset_limit >= 0 && world->started_count > config->reset_limit))
        return false;
    if (core_newcomers(&world->core) != NULL)
        return false; /* it grows */
    bool registered = false;
    for (int m = 0; m < plan->size; m++) {
        const struct sim_worker *worker = &world->workers[plan->uids[m]];
        if (worker->told_exited || worker->gone)
            return false;
        registered |= worker->told_registered || worker->ever_asked;
    }
    if (!world->workers[plan->uids[0]].told_registered &&
        (registered || config->mode == ELASTIC_REJOIN))
        return false;
    int slots = 0;
    for (int h = 0; h < SCHEDULE_HOSTS; h++) {
        const struct sim_host *host = &world->hosts[h];
        if (!host->up || !host->told_listed || host->told_draining)
            continue;
        const struct elastic_host_facts facts = core_host(&world->core, host->number);
        if (facts.blacklisted_until_ms == 0)
            slots += host->told_slots - facts.blacklisted_slots;
    }
    return slots > plan->size;
}

/* Nobody whom the job could use waits to be called for longer than the back-off. */
static void check_called(struct world *world)
{
    const struct elastic_config *config = &world->schedule->config;
    for (int h = 0; h < SCHEDULE_HOSTS && config->max_np == 0 && !world->verdict; h++) {
        const struct sim_host *host = &world->hosts[h];
        if (host->calling || host->up || !host->told_listed || host->told_draining ||
            host->number < 0)
            continue;
        const struct elastic_host_facts facts = core_host(&world->core, host->number);
        const int64_t away_ms = host->told_away_ms < 0 ? 0 : core_now(world) - host->told_away_ms;
        if (facts.blacklisted_until_ms != 0 || facts.blacklisted_slots == host->told_slots)
            continue;
        if (facts.state != ELASTIC_HOST_AWAY || away_ms > config->reconnect_max_ms + 5000)
            world_problem(world, INV_GROWTH, "%s is '%s' for %lld ms, and not called", host->name,
                          elastic_host_state_name(facts.state), (long long)away_ms);
    }
}

/* At the deadline of its drain a host's workers are ended, whatever they wait for. */
static void check_left(struct world *world)
{
    for (int seat = 0; seat < WORLD_SEATS; seat++) {
        const struct sim_worker *worker = world_worker(world, seat);
        if (!worker_is_live(worker) || worker->kill_sent || worker->removed)
            continue;
        const struct sim_host *host = &world->hosts[worker->host];
        if (host->told_draining && host->told_deadline_ms >= 0 &&
            world->core_last_ms > host->told_deadline_ms + 7000)
            world_problem(world, INV_LEAVE, "seat %d is on %s, whose deadline was %lld ms ago",
                          seat, host->name,
                          (long long)(world->core_last_ms - host->told_deadline_ms));
    }
}

void check_before(struct world *world)
{
    if (world->verdict)
        return;
    check_stay(world);
    if (!world->jumped)
        check_left(world);
    if (world->jumped || !could_grow(world)) {
        world->grow_since_ms = -1;
        return;
    }
    if (world->grow_since_ms < 0)
        world->grow_since_ms = world->now_ms;
    if (world->now_ms > world->grow_since_ms + world->schedule->config.grow_delay_ms + 20000)
        world_problem(world, INV_GROWTH, "epoch %u could grow for %lld ms", world->started.epoch,
                      (long long)(world->now_ms - world->grow_since_ms));
}

static void check_deadline(struct world *world, const struct elastic_event *event)
{
    const int64_t deadline = core_deadline(&world->core);
    const enum elastic_state state = core_state(&world->core);
    bool pending = state != ELASTIC_RUNNING && state != ELASTIC_DONE;
    for (int seat = 0; seat < WORLD_SEATS && !pending; seat++) {
        const struct sim_worker *worker = world_worker(world, seat);
        pending = worker_is_live(worker) &&
                  (worker->kill_sent || worker->removed || !worker->told_started);
    }
    if (pending && deadline == -1)
        world_problem(world, INV_DEADLINE, "no deadline in state '%s'", elastic_state_name(state));
    if (event->kind == ELASTIC_TICK && deadline != -1 && deadline <= world->core_last_ms)
        world_problem(world, INV_SPIN, "after a tick at %lld the next one is due at %lld",
                      (long long)world->core_last_ms, (long long)deadline);
}

static enum elastic_host_state expected(const struct sim_host *host, enum elastic_host_state state)
{
    if (host->calling)
        return ELASTIC_HOST_CALLING;
    if (host->up)
        return state == ELASTIC_HOST_DRAINING ? state : ELASTIC_HOST_UP;
    return state == ELASTIC_HOST_CALLING || state == ELASTIC_HOST_UP ||
                   state == ELASTIC_HOST_DRAINING
               ? ELASTIC_HOST_KNOWN
               : state;
}

/* A number stays with its name. */
static void check_numbers(struct world *world)
{
    if (elastic_host_count(world->core.elastic) != world->number_count)
        world_problem(world, INV_VIEW, "%d hosts, not %d", elastic_host_count(world->core.elastic),
                      world->number_count);
    for (int h = 0; h < SCHEDULE_HOSTS; h++) {
        const struct sim_host *host = &world->hosts[h];
        const int number = elastic_host_number(world->core.elastic, host->name);
        if (number != host->number)
            world_problem(world, INV_VIEW, "%s has number %d, it was %d", host->name, number,
                          host->number);
    }
}

static void check_hosts(struct world *world)
{
    int live[SCHEDULE_HOSTS] = {0};
    for (int seat = 0; seat < WORLD_SEATS; seat++) {
        const struct sim_worker *worker = world_worker(world, seat);
        if (worker_is_live(worker))
            live[worker->host]++;
    }
    for (int h = 0; h < SCHEDULE_HOSTS; h++) {
        struct sim_host *host = &world->hosts[h];
        if (host->number < 0)
            continue;
        const struct elastic_host_facts facts = core_host(&world->core, host->number);
        /* failures are counted anew after a cooldown */
        if (facts.blacklisted_slots > host->seen_blacklisted)
            memset(host->failure_count, 0, WORLD_SLOTS * sizeof(host->failure_count[0]));
        if (facts.blacklisted_until_ms > host->seen_blacklisted_ms)
            host->failure_count[WORLD_SLOTS] = 0;
        world->hosts_changed |= facts.blacklisted_slots != 0 || facts.blacklisted_until_ms != 0;
        host->seen_blacklisted = facts.blacklisted_slots;
        host->seen_blacklisted_ms = facts.blacklisted_until_ms;
        if (facts.state != expected(host, facts.state))
            world_problem(world, INV_VIEW, "%s is '%s', but the driver has %s", host->name,
                          elastic_host_state_name(facts.state),
                          host->up        ? "a link"
                          : host->calling ? "a call"
                                          : "nothing");
        const bool reserved = world->prepare.active || world->batch_prepare.active;
        if (facts.workers != live[h] && !reserved)
            world_problem(world, INV_VIEW, "%s has %d workers, the core says %d", host->name,
                          live[h], facts.workers);
    }
}

static void check_workers(struct world *world)
{
    for (int seat = 0; seat < elastic_seat_count(world->core.elastic); seat++) {
        const struct sim_worker *worker = world_worker(world, seat);
        const struct elastic_worker_facts facts = elastic_worker_facts(world->core.elastic, seat);
        const bool core_live = facts.state != ELASTIC_WORKER_FREE &&
                               facts.state != ELASTIC_WORKER_PLANNED &&
                               facts.state != ELASTIC_WORKER_EXITED;
        if (core_live != worker_is_live(worker))
            world_problem(world, INV_VIEW, "seat %d is '%s'", seat,
                          elastic_worker_state_name(facts.state));
        if (core_live && worker_is_live(worker) && !worker->removed &&
            (facts.rank != worker->rank || facts.local_rank != worker->local_rank ||
             world->by_number[facts.host] != worker->host || facts.slot != worker->slot))
            world_problem(world, INV_VIEW, "seat %d is rank %d/%d, the core says %d/%d", seat,
                          worker->rank, worker->local_rank, facts.rank, facts.local_rank);
        const bool ended =
            facts.state == ELASTIC_WORKER_KILLED || facts.state == ELASTIC_WORKER_DISMISSED;
        if (core_live && worker_is_live(worker) && ended && !worker->kill_sent)
            world_problem(world, INV_VIEW, "seat %d is being ended, but not by the driver", seat);
    }
}

/* Requests that are held although nothing is waited for, or held for very long. */
static void check_held(struct world *world)
{
    const bool idle = core_state(&world->core) == ELASTIC_RUNNING && world->resumed;
    for (int r = 0; r < world->request_count; r++) {
        const struct sim_request *request = &world->requests[r];
        if (!request->told || request->answered || request->dropped || world->verdict)
            continue;
        const struct sim_worker *worker = request->uid < 0 ? NULL : &world->workers[request->uid];
        if (worker != NULL && (!worker_is_live(worker) || worker->kill_sent))
            continue;
        if (worker == NULL ? world->now_ms > request->told_ms + 500000 : idle)
            world_problem(world, INV_ANSWER_NEVER, "request %d of seat %d is held", r + 1,
                          worker == NULL ? -1 : worker->seat);
    }
}

/* By the hosts that the core uses: one that drains and is listed again may not be among them. */
static bool awaits_newcomers(struct world *world)
{
    int slots = 0;
    for (int n = 0; n < elastic_host_count(world->core.elastic); n++) {
        const struct elastic_host_facts facts = core_host(&world->core, n);
        if (facts.state == ELASTIC_HOST_UP && facts.blacklisted_until_ms == 0)
            slots += facts.slots - facts.blacklisted_slots;
    }
    bool ending = false;
    for (int seat = 0; seat < WORLD_SEATS; seat++) {
        const struct sim_worker *worker = world_worker(world, seat);
        ending |= worker_is_live(worker) && worker->newcomer && worker->kill_sent;
    }
    return ending && core_state(&world->core) == ELASTIC_WAITING &&
           slots >= world->schedule->config.min_np;
}

void check_after(struct world *world, const struct elastic_event *event)
{
    const enum elastic_state state = core_state(&world->core);
    /* the limit for finding hosts runs on while an epoch is prepared, or what is left is stopped */
    if (world->state_before == ELASTIC_RUNNING || world->state_before == ELASTIC_AGREEING ||
        world->newcomers_awaited)
        world->waiting_since_ms = world->core_last_ms;
    world->newcomers_awaited = awaits_newcomers(world);
    if ((state == ELASTIC_DONE) != world->over)
        world_problem(world, INV_ENDS, "state '%s', OVER has %scome", elastic_state_name(state),
                      world->over ? "" : "not ");
    if (event->kind == ELASTIC_HUNG && state == ELASTIC_RUNNING)
        world_problem(world, INV_HUNG, "seat %d hangs, and the epoch goes on", event->seat);
    if (state != world->state_before)
        world->state_since_ms = world->core_last_ms;
    check_deadline(world, event);
    if (!world->jumped)
        check_called(world);
    check_workers(world);
    if (event->kind == ELASTIC_HOSTS && !world->verdict)
        check_numbers(world);
    if (!world->verdict)
        check_hosts(world);
    check_held(world);
    if (!world->verdict && !world->resumed && world->started_count > 0 &&
        state == ELASTIC_RUNNING && check_all_placed(world))
        world_problem(world, INV_RESUMED, "epoch %u has all its ranks, but does not resume",
                      world->started.epoch);
}
