/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver of the simulated world: records which events the core gets, and carries out the core's
 * actions. check_action.c has checked these before.
 */
#include <string.h>

#include "sim/statistics.h"
#include "sim/world.h"

static void told_hosts(struct world *world, const struct elastic_event *event)
{
    world->discovery_told = true;
    for (int h = 0; h < SCHEDULE_HOSTS; h++) {
        struct sim_host *host = &world->hosts[h];
        const struct host *entry = hosts_find(event->hosts, host->name);
        const bool again = entry != NULL && !host->told_listed;
        /* losing slots is being preempted, too */
        world->drain_told |=
            host->told_listed && (entry == NULL || entry->slots < host->told_slots);
        host->told_listed = entry != NULL;
        world->leave_told |= host->told_slots > (entry != NULL ? entry->slots : 0);
        host->told_slots = entry != NULL ? entry->slots : 0;
        if (again || entry == NULL) {
            host->told_away_ms = -1;
            host->told_draining = false;
        }
    }
    for (size_t i = 0; i < event->hosts->count; i++) {
        const int h = event->hosts->items[i].name[1] - '0';
        if (world->hosts[h].number >= 0)
            continue;
        world->hosts[h].number = world->number_count;
        world->by_number[world->number_count++] = h;
    }
}

/* `spared`: the job can go on without that slot or host. */
static void count_failure(struct world *world, int h, int row, bool spared)
{
    struct sim_host *host = &world->hosts[h];
    const struct elastic_config *config = &world->schedule->config;
    if (host->failure_count[row] == WORLD_FAILURES)
        return;
    host->failures[row][host->failure_count[row]++] = world->core_last_ms;
    const int count = host->failure_count[row];
    if (count < config->failure_limit || world->jumped || !spared ||
        world->core_last_ms - host->failures[row][count - config->failure_limit] >=
            config->failure_decay_ms)
        return;
    /* it must be blacklisted, for the cooldown at least; failures are counted anew after it */
    host->blacklisted_until_ms[row] =
        config->cooldown_min_ms == 0 ? INT64_MAX : world->core_last_ms + config->cooldown_min_ms;
    host->failure_count[row] = 0;
}

static void told_lost(struct world *world, struct sim_host *host)
{
    const int h = (int)(host - world->hosts);
    bool had_member = false;
    for (int seat = 0; seat < WORLD_SEATS; seat++) {
        const struct sim_worker *worker = world_worker(world, seat);
        if (worker != NULL && worker->host == h && worker_is_live(worker) && !worker->newcomer &&
            worker->epoch == world->started.epoch)
            comm_gate_breaks(world);
        had_member |= worker != NULL && worker->host == h && worker_is_live(worker);
    }
    if (had_member && host->told_listed && !host->told_draining && !world->failure_told &&
        core_state(&world->core) == ELASTIC_RUNNING)
        count_failure(world, h, WORLD_SLOTS, true);
    world->failure_told = true;
    world->loss_told = true;
    host->told_away_ms = core_now(world);
    host->stays = false;
    host_close(world, h);
}

/* A worker of an elastic program has ended with 0 by itself: it holds that the work is done. */
static bool has_succeeded(const struct world *world, const struct sim_worker *worker)
{
    const enum elastic_mode mode = world->schedule->config.mode;
    const bool member = !worker->newcomer && !worker->removed && !worker->kill_sent &&
                        worker->epoch == world->started.epoch;
    const bool rejoins = mode == ELASTIC_REJOIN || worker->told_registered || worker->ever_asked;
    return member && worker->code == 0 && mode != ELASTIC_RESTART && rejoins;
}

/* A crash counts beyond doubt when it is the first thing that went wrong in a running epoch.
 */
static void told_exited(struct world *world, struct sim_worker *worker)
{
    if (!worker->newcomer && worker->epoch == world->started.epoch)
        comm_gate_breaks(world);
    const bool failed = worker->code != 0 && !worker->kill_sent && !worker->removed;
    world->succeeded_told |= has_succeeded(world, worker);
    worker->told_exited = true;
    if (worker->newcomer) {
        world->crash_told = true;
        return; /* a failure of its slot, not of the epoch */
    }
    if ((!worker->kill_sent || worker->ended_before) && !worker->removed)
        world->crash_told = true;
    const struct sim_host *host = &world->hosts[worker->host];
    if (failed && !world->failure_told && host->told_listed && !host->told_draining &&
        worker->epoch == world->started.epoch && core_state(&world->core) == ELASTIC_RUNNING &&
        worker->slot < WORLD_SLOTS)
        count_failure(world, worker->host, worker->slot, true);
    if (!worker->kill_sent && !worker->removed)
        world->failure_told = true;
}

/* Beyond doubt: hosts that are up have enough slots without this one. */
static bool can_spare(const struct world *world, int left_out)
{
    int slots = 0;
    for (int h = 0; h < SCHEDULE_HOSTS; h++) {
        const struct sim_host *host = &world->hosts[h];
        if (h == left_out || !host->up || !host->told_listed || host->told_draining)
            continue;
        const struct elastic_host_facts facts = core_host(&world->core, host->number);
        if (facts.blacklisted_until_ms == 0)
            slots += host->told_slots - facts.blacklisted_slots;
    }
    return slots >= world->schedule->config.min_np;
}

static void told_hung(struct world *world, const struct elastic_event *event)
{
    struct sim_worker *worker = world_worker(world, event->seat);
    if (core_state(&world->core) != ELASTIC_RUNNING)
        return; /* a change is under way */
    world->hung_told = world->failure_told = true;
    if (worker == NULL || !worker_is_live(worker) || worker->kill_sent || worker->removed)
        return;
    worker->told_hung = true;
    const struct sim_host *host = &world->hosts[worker->host];
    if (host->told_listed && !host->told_draining)
        count_failure(world, worker->host, WORLD_SLOTS, can_spare(world, worker->host));
}

static void told_worker(struct world *world, const struct elastic_event *event)
{
    struct sim_worker *worker = world_worker(world, event->seat);
    if (worker == NULL)
        return;
    if (event->kind == ELASTIC_STARTED) {
        worker->told_started = true;
    } else if (event->kind == ELASTIC_CAN_JOIN) {
        worker->told_can_join = true;
    } else if (event->kind == ELASTIC_STUCK) {
        worker->told_held = worker_is_live(worker) && !worker->told_ask;
        worker->told_started = true;
    } else if (event->kind == ELASTIC_EXITED) {
        told_exited(world, worker);
    } else if (worker->told_exited) {
        worker->told_finished = true;
        world->seats[worker->seat] = 0;
    }
}

static void told_came(struct sim_host *host, const struct elastic_event *event)
{
    const int boot = event->text[5] - '0';
    if (boot != host->told_boot) {
        memset(host->failure_count, 0, sizeof(host->failure_count));
        memset(host->blacklisted_until_ms, 0, sizeof(host->blacklisted_until_ms));
        host->told_draining = false;
    }
    host->told_boot = boot;
    host->told_away_ms = -1;
}

static void told_request(struct world *world, const struct elastic_event *event)
{
    if (event->request == 0 || event->request > (uint64_t)world->request_count)
        return;
    struct sim_request *request = &world->requests[event->request - 1];
    if (event->kind == ELASTIC_ASK_DROPPED) {
        request->told_dropped = true;
        return;
    }
    request->told = true;
    request->told_ms = world->now_ms;
    request->told_epoch = world->started.epoch;
    if (request->uid < 0)
        return;
    world->ask_told = true;
    world->workers[request->uid].told_ask = world->workers[request->uid].ever_asked = true;
}

static struct sim_host *host_of(struct world *world, const struct elastic_event *event)
{
    if (event->host < 0 || event->host >= world->number_count)
        return NULL;
    return &world->hosts[world->by_number[event->host]];
}

static void told_registered(struct world *world, const struct elastic_event *event)
{
    for (int seat = 0; seat < WORLD_SEATS; seat++) {
        struct sim_worker *worker = world_worker(world, seat);
        if (worker_is_live(worker) && worker->registered &&
            world->hosts[worker->host].number == event->host &&
            worker->local_rank == event->local_rank)
            worker->told_registered = true;
    }
}

void driver_told(struct world *world, const struct elastic_event *event)
{
    struct sim_host *host = host_of(world, event);
    if (world->last_epoch > 0 && event->kind >= ELASTIC_HOSTS &&
        event->kind <= ELASTIC_HOST_UNDRAIN)
        world->hosts_changed = true;
    switch (event->kind) {
    case ELASTIC_HOSTS: told_hosts(world, event); break;
    case ELASTIC_HOST_CAME: told_came(host, event); break;
    case ELASTIC_HOST_UNREACHED:
        if (host != NULL)
            host->told_away_ms = core_now(world);
        break;
    case ELASTIC_HOST_LOST:
        if (host != NULL && host->up)
            told_lost(world, host);
        break;
    case ELASTIC_HOST_DRAIN:
        world->drain_told = world->leave_told = true;
        if (host != NULL && host->told_listed) {
            host->told_draining = true;
            host->told_deadline_ms = event->deadline_ms;
        }
        break;
    case ELASTIC_HOST_UNDRAIN:
        if (host != NULL) {
            host->told_draining = false;
            host->told_away_ms = -1;
        }
        break;
    case ELASTIC_PREPARED:
        if (world->prepare.active && event->epoch == world->prepare.epoch)
            world->prepare.told_prepared = true;
        if (world->batch_prepare.active && event->epoch == world->batch_prepare.epoch)
            world->batch_prepare.told_prepared = true;
        break;
    case ELASTIC_PREPARE_FAILED: world->prepare_failure_told = world->hosts_changed = true; break;
    case ELASTIC_REGISTERED: told_registered(world, event); break;
    case ELASTIC_ASKED:
    case ELASTIC_ASK_DROPPED: told_request(world, event); break;
    case ELASTIC_STARTED:
    case ELASTIC_CAN_JOIN:
    case ELASTIC_STUCK:
    case ELASTIC_EXITED:
    case ELASTIC_FINISHED: told_worker(world, event); break;
    case ELASTIC_HUNG: told_hung(world, event); break;
    case ELASTIC_END: world->end_told = true; break;
    default: break;
    }
    hosts_watch(world);
}

/* Actions. */

static void prepare(struct world *world, const struct sim_plan *plan, struct sim_prepare *out)
{
    *out = (struct sim_prepare){.active = true, .epoch = plan->epoch, .since_ms = core_now(world)};
    for (int m = 0; m < plan->size; m++) {
        const int h = world->by_number[plan->members[m].host];
        if (plan->members[m].is_new && (out->waiting & (1u << h)) == 0) {
            out->waiting |= 1u << h;
            host_receive(world, h, (struct task){.kind = TASK_READY, .epoch = plan->epoch});
        }
    }
    if (out->waiting == 0)
        world_add(world, &(struct task){.at_ms = world->now_ms,
                                        .kind = TASK_TELL,
                                        .event = {.kind = ELASTIC_PREPARED, .epoch = plan->epoch}});
}

/* Twice on its way: PREPARE reaches the host (value 0), READY comes back (value 1). */
void driver_ready(struct world *world, const struct task *task)
{
    struct sim_host *host = &world->hosts[task->host];
    struct sim_prepare *prepared = &world->prepare;
    if (world->batch_prepare.active && task->epoch == world->batch_prepare.epoch)
        prepared = &world->batch_prepare;
    if (!host->agent && task->value == 0)
        return;
    if (task->value == 0 && host->prepare_failures > 0) {
        host->prepare_failures--;
        host_send(world, task->host, rng_between(&host->rng, 1, 300),
                  &(struct elastic_event){.kind = ELASTIC_PREPARE_FAILED,
                                          .epoch = task->epoch,
                                          .host = host->number,
                                          .code = 127,
                                          .text = "no such file"});
    } else if (task->value == 0) {
        struct task ready = *task;
        ready.value = 1;
        ready.at_ms =
            world->now_ms + rng_between(&host->rng, 1, rng_chance(&host->rng, 70) ? 300 : 2000);
        if (ready.at_ms < host->stuck_until_ms)
            ready.at_ms = host->stuck_until_ms;
        if (ready.at_ms < host->silent_until_ms)
            ready.at_ms = host->silent_until_ms;
        world_add(world, &ready);
    } else if (prepared->active && prepared->epoch == task->epoch) {
        prepared->waiting &= ~(1u << task->host);
        if (prepared->waiting == 0)
            world_tell(world,
                       &(struct elastic_event){.kind = ELASTIC_PREPARED, .epoch = task->epoch});
    }
}

bool sim_plan_joins(const struct sim_plan *plan)
{
    bool joins = false;
    for (int m = 0; m < plan->size; m++)
        joins |= plan->joins[m];
    return joins;
}

static void start(struct world *world)
{
    struct sim_plan *plan = &world->planned;
    const struct elastic_plan *now = core_plan(&world->core);
    for (int m = 0; m < plan->size; m++)
        plan->members[m] = now->members[m];
    world->prepare.active = false;
    bool joined = sim_plan_joins(plan);
    bool shrunk = plan->size < world->started.size;
    world->refill_count += joined && world->may_refill;
    world->may_refill = shrunk || (world->may_refill && !joined);
    world->started = *plan;
    world->started_count++;
    world->resumed = false;
    world->failure_told = world->leave_told = world->succeeded_told = false;
    comm_start(world, plan->epoch, plan->size);
    for (int i = 0; i < plan->host_count; i++)
        world->hosts[world->by_number[plan->hosts[i]]].stays = true;
    for (int m = 0; m < plan->size && world->broken == INV_NONE; m++) {
        if (plan->members[m].is_new)
            world->started.uids[m] = worker_create(world, &plan->members[m], plan->epoch);
        else if (plan->repairs)
            comm_wait_on(world, plan->uids[m], plan->epoch);
        if (plan->joins[m])
            worker_joins(world, plan->uids[m], &plan->members[m], plan->epoch);
        if (world->started.uids[m] >= 0)
            world->workers[world->started.uids[m]].told_ask = false;
    }
    check_places(world);
}

static void start_newcomers(struct world *world)
{
    struct sim_plan *batch = &world->batch;
    world->batch_prepare.active = false;
    world->batch_started = true;
    for (int m = 0; m < batch->size && world->broken == INV_NONE; m++) {
        if (!batch->members[m].is_new)
            continue;
        batch->uids[m] = worker_create(world, &batch->members[m], batch->epoch);
        if (batch->uids[m] >= 0)
            worker_newcomer(world, batch->uids[m]);
    }
    check_places(world);
}

static void answer(struct world *world, const struct elastic_action *action)
{
    struct sim_request *request = &world->requests[action->request - 1];
    request->answered = true;
    if (request->uid < 0)
        return;
    struct sim_worker *worker = &world->workers[request->uid];
    if (action->seat < 0) {
        worker->removed = true;
    } else {
        for (int m = 0; m < world->started.size; m++) {
            if (world->started.members[m].seat != action->seat)
                continue;
            worker->epoch = world->started.epoch;
            worker->rank = world->started.members[m].rank;
            worker->local_rank = world->started.members[m].local_rank;
        }
        check_places(world);
    }
    worker_answered(world, request->uid, (int)action->request);
}

static void end_worker(struct world *world, int seat, int64_t grace_ms)
{
    struct sim_worker *worker = world_worker(world, seat);
    if (!worker_is_live(worker))
        return;
    worker->ended_before |= worker->ended;
    worker->kill_sent = true;
    host_receive(
        world, worker->host,
        (struct task){.kind = TASK_TERM, .uid = world->seats[seat] - 1, .value = grace_ms});
}

static void end_all(struct world *world, int64_t grace_ms)
{
    for (int seat = 0; seat < WORLD_SEATS; seat++)
        end_worker(world, seat, grace_ms);
}

void driver_end(struct world *world)
{
    world->verdict = true;
    statistics_verdict(world);
    end_all(world, world->schedule->config.grace_ms);
    for (int h = 0; h < SCHEDULE_HOSTS; h++) {
        struct sim_host *host = &world->hosts[h];
        /* a call may come to its end a little late */
        if (host->calling && rng_chance(&host->rng, 70))
            host_close(world, h);
    }
}

void driver_do(struct world *world, const struct elastic_action *action)
{
    const bool by_host = action->host >= 0 && action->host < world->number_count;
    const int h = by_host ? world->by_number[action->host] : 0;
    switch (action->kind) {
    case ELASTIC_CALL: host_called(world, h); break;
    case ELASTIC_LET_GO: host_close(world, h); break;
    case ELASTIC_GIVE_UP:
        world->loss_told = true;
        world->failure_told = true;
        world->hosts[h].told_away_ms = core_now(world);
        world->hosts[h].stays = false;
        host_close(world, h);
        break;
    case ELASTIC_PREPARE:
        world->state_since_ms = world->core_last_ms;
        prepare(world, &world->planned, &world->prepare);
        break;
    case ELASTIC_CANCEL: world->prepare.active = false; break;
    case ELASTIC_PREPARE_NEWCOMERS: prepare(world, &world->batch, &world->batch_prepare); break;
    case ELASTIC_CANCEL_NEWCOMERS: world->batch_prepare.active = false; break;
    case ELASTIC_START_NEWCOMERS: start_newcomers(world); break;
    case ELASTIC_START: start(world); break;
    case ELASTIC_ANSWER: answer(world, action); break;
    case ELASTIC_KILL: end_worker(world, action->seat, action->grace_ms); break;
    case ELASTIC_END_ALL: end_all(world, action->grace_ms); break;
    case ELASTIC_NOTIFY:
        world->grow_since_ms = -1;
        host_receive(world, world_worker(world, action->seat)->host,
                     (struct task){.kind = TASK_NOTIFIED, .uid = world->seats[action->seat] - 1});
        break;
    case ELASTIC_RESUMED:
        world->resumed = true;
        world->lost_ms = core_facts(&world->core)->lost_ms;
        break;
    case ELASTIC_VERDICT: driver_end(world); break;
    case ELASTIC_OVER: world->over = true; break;
    default: break;
    }
}
