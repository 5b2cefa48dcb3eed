/* SPDX-License-Identifier: Apache-2.0 */
/* What must be true before the driver does what an action says. */
#include <string.h>

#include "sim/world.h"

static void copy_plan(const struct world *world, const struct elastic_plan *plan,
                      struct sim_plan *copy)
{
    copy->epoch = plan->epoch;
    copy->restart_count = plan->restart_count;
    copy->fresh = plan->fresh;
    copy->repairs = plan->repairs;
    copy->size = plan->size;
    copy->host_count = plan->host_count;
    for (int m = 0; m < plan->size; m++) {
        copy->members[m] = plan->members[m];
        const int seat = plan->members[m].seat;
        const bool survives = !plan->members[m].is_new && seat >= 0 && seat < WORLD_SEATS;
        copy->uids[m] = survives ? world->seats[seat] - 1 : -1;
        copy->joins[m] = copy->uids[m] >= 0 && world->workers[copy->uids[m]].newcomer;
    }
    for (int i = 0; i < plan->host_count; i++)
        copy->hosts[i] = plan->hosts[i];
}

/* There is one batch at a time, and its number is as new as that of an epoch. */
static void prepare_newcomers(struct world *world)
{
    const struct elastic_plan *plan = core_newcomers(&world->core);
    if (plan == NULL || plan->size > CORE_MEMBERS || plan->host_count > CORE_MEMBERS) {
        world_problem(world, plan == NULL ? INV_PREPARE : INV_WORLD, "newcomers without a plan");
        return;
    }
    if (world->batch_prepare.active)
        world_problem(world, INV_PREPARE, "newcomers of %u are neither started nor cancelled",
                      world->batch_prepare.epoch);
    if (plan->epoch <= world->last_epoch)
        world_problem(world, INV_EPOCH, "newcomers of %u come after epoch %u", plan->epoch,
                      world->last_epoch);
    world->last_epoch = plan->epoch;
    world->batch_started = false;
    copy_plan(world, plan, &world->batch);
    check_newcomers(world, &world->batch);
}

static void start_newcomers(struct world *world)
{
    if (!world->batch_prepare.active || !world->batch_prepare.told_prepared)
        world_problem(world, INV_PREPARE, "newcomers are started before they are prepared");
}

static void cancel_newcomers(struct world *world, const struct elastic_action *action)
{
    if (!world->batch_prepare.active || action->epoch != world->batch_prepare.epoch)
        world_problem(world, INV_PREPARE, "newcomers of %u are cancelled, but not prepared",
                      action->epoch);
}

static void prepare(struct world *world)
{
    const struct elastic_plan *plan = core_plan(&world->core);
    if (plan == NULL || plan->size > CORE_MEMBERS || plan->host_count > CORE_MEMBERS) {
        world_problem(world, plan == NULL ? INV_PREPARE : INV_WORLD, "PREPARE without a plan");
        return;
    }
    if (world->prepare.active)
        world_problem(world, INV_PREPARE, "PREPARE, but epoch %u is neither started nor cancelled",
                      world->prepare.epoch);
    const bool theirs = world->batch_started && plan->epoch == world->batch.epoch;
    if (theirs ? plan->epoch <= world->started.epoch : plan->epoch <= world->last_epoch)
        world_problem(world, INV_EPOCH, "epoch %u comes after epoch %u", plan->epoch,
                      world->last_epoch);
    if (!theirs)
        world->last_epoch = plan->epoch;
    copy_plan(world, plan, &world->planned);
    check_plan(world, &world->planned);
}

static void start(struct world *world)
{
    if (!world->prepare.active)
        world_problem(world, INV_PREPARE, "START of what was not prepared");
    else if (!world->prepare.told_prepared)
        world_problem(world, INV_PREPARE, "START before PREPARED");
    else
        check_start(world);
}

static void cancel(struct world *world, const struct elastic_action *action)
{
    if (!world->prepare.active)
        world_problem(world, INV_PREPARE, "CANCEL of what was not prepared");
    else if (action->epoch != world->prepare.epoch)
        world_problem(world, INV_PREPARE, "CANCEL of epoch %u, prepared is %u", action->epoch,
                      world->prepare.epoch);
    if (world->prepare.active &&
        core_now(world) >= world->prepare.since_ms + world->schedule->config.prepare_timeout_ms)
        world->prepare_expired = true;
}

static void call(struct world *world, const struct sim_host *host)
{
    if (host->calling || host->up)
        world_problem(world, INV_CALL, "CALL of %s, which is %s", host->name,
                      host->up ? "up" : "being called");
    /* a drained host that was lost may come back as another machine */
    if (!host->told_listed || (host->told_draining && host->told_away_ms < 0))
        world_problem(world, INV_CALL, "CALL of %s, which is %s", host->name,
                      host->told_listed ? "drained" : "not listed");
    if (host->told_away_ms >= 0 && !world->jumped &&
        core_now(world) < host->told_away_ms + world->schedule->config.reconnect_min_ms)
        world_problem(world, INV_CALL, "CALL of %s too soon after it was lost", host->name);
}

static int live_on(struct world *world, int h)
{
    int count = 0;
    for (int seat = 0; seat < WORLD_SEATS; seat++) {
        const struct sim_worker *worker = world_worker(world, seat);
        count += worker_is_live(worker) && worker->host == h;
    }
    return count;
}

static void let_go(struct world *world, const struct sim_host *host)
{
    const int h = (int)(host - world->hosts);
    if (!host->calling && !host->up)
        world_problem(world, INV_LET_GO, "LET_GO of %s, which is not there", host->name);
    if (live_on(world, h) > 0)
        world_problem(world, INV_LET_GO, "LET_GO of %s, which has %d workers", host->name,
                      live_on(world, h));
    for (int m = 0; world->prepare.active && m < world->planned.size; m++) {
        if (world->planned.members[m].host == host->number && world->planned.members[m].is_new)
            world_problem(world, INV_LET_GO, "LET_GO of %s, which is being prepared", host->name);
    }
}

static void give_up(struct world *world, const struct sim_host *host)
{
    if (!host->up)
        world_problem(world, INV_GIVE_UP, "GIVE_UP of %s, which is not up", host->name);
    else if (!host->slow && !world->jumped)
        world_problem(world, INV_GIVE_UP, "GIVE_UP of %s, which does what it should", host->name);
}

static void kill_one(struct world *world, const struct elastic_action *action)
{
    const struct sim_worker *worker = world_worker(world, action->seat);
    if (!worker_is_live(worker))
        world_problem(world, INV_KILL, "KILL of seat %d, where nobody lives", action->seat);
    else if (worker->kill_sent && action->grace_ms > 0)
        world_problem(world, INV_KILL, "KILL of seat %d once more, with grace", action->seat);
}

static void notify(struct world *world, const struct elastic_action *action)
{
    const struct sim_worker *worker = world_worker(world, action->seat);
    if (!worker_is_live(worker))
        world_problem(world, INV_NOTIFY, "NOTIFY of seat %d, where nobody lives", action->seat);
    else if (worker->rank != 0 || worker->epoch != world->started.epoch)
        world_problem(world, INV_NOTIFY, "NOTIFY of seat %d, which is rank %d of epoch %u",
                      action->seat, worker->rank, worker->epoch);
    else if (!worker->told_registered || worker->kill_sent)
        world_problem(world, INV_NOTIFY, "NOTIFY of seat %d, which %s", action->seat,
                      worker->kill_sent ? "was killed" : "has not registered");
    /* nothing has come or gone but newcomers: then all of them can join */
    bool all = !world->batch_started;
    for (int m = 0; m < world->batch.size && !all; m++) {
        const int uid = world->batch.members[m].is_new ? world->batch.uids[m] : -1;
        if (uid < 0)
            continue;
        all = world->workers[uid].told_can_join || !world->workers[uid].newcomer;
        if (!all)
            break;
    }
    if (world->schedule->config.early && !all && !world->leave_told)
        world_problem(world, INV_QUIET, "NOTIFY, but not all newcomers can join");
}

static bool in_started(const struct world *world, int seat)
{
    for (int m = 0; m < world->started.size; m++) {
        if (world->started.members[m].seat == seat)
            return true;
    }
    return false;
}

/* A member of the plan may be told that it is removed only when it is ended anyway. */
static void answer_removed(struct world *world, int uid)
{
    const struct sim_worker *worker = &world->workers[uid];
    const bool fine = worker->gone || worker->kill_sent || worker->told_exited || world->verdict;
    if (!fine && worker->epoch == world->started.epoch && world->resumed)
        return; /* it has its place, asks for the next one, and there is none: see below */
    if (!fine && world->prepare.active)
        world_problem(world, INV_ANSWER_EARLY, "seat %d is removed before START", worker->seat);
    for (int m = 0; !fine && m < world->started.size; m++) {
        if (world->started.uids[m] == uid && worker->epoch != world->started.epoch)
            world_problem(world, INV_ANSWER_PLACE,
                          "seat %d is told that it is removed, but it is "
                          "rank %d of epoch %u",
                          worker->seat, m, world->started.epoch);
    }
}

void check_answer(struct world *world, const struct elastic_action *action)
{
    if (action->request == 0 || action->request > (uint64_t)world->request_count) {
        world_problem(world, INV_ANSWER, "an answer to request %llu, which there is not",
                      (unsigned long long)action->request);
        return;
    }
    const struct sim_request *request = &world->requests[action->request - 1];
    if (!request->told || request->answered || request->told_dropped)
        world_problem(world, INV_ANSWER, "an answer to request %llu, which %s",
                      (unsigned long long)action->request,
                      request->answered ? "was answered"
                      : request->told   ? "was dropped"
                                        : "has not come");
    if (request->uid < 0) {
        if (action->seat >= 0)
            world_problem(world, INV_ANSWER_PLACE, "a stray is told the place of seat %d",
                          action->seat);
        return;
    }
    const struct sim_worker *worker = &world->workers[request->uid];
    if (action->seat < 0) {
        answer_removed(world, request->uid);
    } else if (action->seat != worker->seat || !worker_is_live(worker)) {
        world_problem(world, INV_ANSWER_PLACE, "seat %d is told the place of seat %d", worker->seat,
                      action->seat);
    } else if (world->prepare.active || !in_started(world, action->seat)) {
        world_problem(world, INV_ANSWER_EARLY, "seat %d is answered before START", worker->seat);
    } else if (worker->epoch == world->started.epoch && request->told_epoch == worker->epoch) {
        world_problem(world, INV_ANSWER_EARLY, "seat %d is told once more its place in epoch %u",
                      worker->seat, worker->epoch);
    }
}

static bool allowed_after(enum elastic_action_kind kind)
{
    switch (kind) {
    case ELASTIC_CALL:
    case ELASTIC_PREPARE:
    case ELASTIC_START:
    case ELASTIC_PREPARE_NEWCOMERS:
    case ELASTIC_START_NEWCOMERS:
    case ELASTIC_NOTIFY:
    case ELASTIC_DEADLINE:
    case ELASTIC_RESUMED:
    case ELASTIC_VERDICT: return false;
    default: return true;
    }
}

static const struct sim_host *named(struct world *world, const struct elastic_action *action)
{
    if (action->host >= 0 && action->host < world->number_count)
        return &world->hosts[world->by_number[action->host]];
    world_problem(world, INV_CALL, "'%s' of host %d, which there is not",
                  elastic_action_name(action->kind), action->host);
    return NULL;
}

static void host_action(struct world *world, const struct elastic_action *action)
{
    const struct sim_host *host = named(world, action);
    if (host == NULL)
        return;
    if (action->kind == ELASTIC_CALL)
        call(world, host);
    else if (action->kind == ELASTIC_LET_GO)
        let_go(world, host);
    else if (action->kind == ELASTIC_GIVE_UP)
        give_up(world, host);
    else if (!host->up)
        world_problem(world, INV_TOLD, "a deadline for %s, which is not up", host->name);
}

static void bad(struct world *world, const struct elastic_action *action)
{
    const struct sim_host *host = named(world, action);
    if (host == NULL)
        return;
    if (host->told_away_ms != core_now(world) && !world->jumped)
        world_problem(world, INV_BAD, "%s is bad, but was not lost", host->name);
    if (!host->told_listed || core_host(&world->core, action->host).blacklisted_until_ms == 0)
        world_problem(world, INV_BAD, "%s is bad, but not on the blacklist", host->name);
}

static void say(struct world *world, const struct elastic_action *action)
{
    if (action->text == NULL || action->text[0] == '\0' || strchr(action->text, '\n') != NULL)
        world_problem(world, INV_TOLD, "an empty line, or more than one, for the user");
}

void check_action(struct world *world, const struct elastic_action *action)
{
    if (world->over || (world->verdict && !allowed_after(action->kind)))
        world_problem(world, action->kind == ELASTIC_VERDICT ? INV_VERDICT : INV_AFTER,
                      "'%s' after the %s", elastic_action_name(action->kind),
                      world->over ? "end" : "verdict");
    switch (action->kind) {
    case ELASTIC_CALL:
    case ELASTIC_LET_GO:
    case ELASTIC_GIVE_UP:
    case ELASTIC_DEADLINE: host_action(world, action); break;
    case ELASTIC_HOST_BAD: bad(world, action); break;
    case ELASTIC_PREPARE: prepare(world); break;
    case ELASTIC_CANCEL: cancel(world, action); break;
    case ELASTIC_START: start(world); break;
    case ELASTIC_PREPARE_NEWCOMERS: prepare_newcomers(world); break;
    case ELASTIC_CANCEL_NEWCOMERS: cancel_newcomers(world, action); break;
    case ELASTIC_START_NEWCOMERS: start_newcomers(world); break;
    case ELASTIC_ANSWER: check_answer(world, action); break;
    case ELASTIC_KILL: kill_one(world, action); break;
    case ELASTIC_NOTIFY: notify(world, action); break;
    case ELASTIC_SAY: say(world, action); break;
    case ELASTIC_RESUMED: check_resumed(world); break;
    case ELASTIC_VERDICT: check_verdict(world); break;
    case ELASTIC_OVER:
        if (!world->verdict && !world->end_told)
            world_problem(world, INV_VERDICT, "OVER without a verdict");
        for (int seat = 0; seat < WORLD_SEATS; seat++) {
            if (worker_is_live(world_worker(world, seat)))
                world_problem(world, INV_REAPED, "OVER, but seat %d lives", seat);
        }
        break;
    default: break;
    }
}
