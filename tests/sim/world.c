/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/world.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sim/statistics.h"

int64_t core_now(const struct world *world)
{
    return WORLD_START_MS + world->now_ms + world->offset_ms;
}

void world_problem(struct world *world, enum invariant invariant, const char *format, ...)
{
    if (world->broken != INV_NONE)
        return;
    world->broken = invariant;
    va_list args;
    va_start(args, format);
    vsnprintf(world->problem, sizeof(world->problem), format, args);
    va_end(args);
}

void world_story(const struct world *world, const char *format, ...)
{
    if (!world->verbose)
        return;
    printf("%9.3f  ", (double)world->now_ms / 1000);
    va_list args;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
}

void world_add(struct world *world, const struct task *task)
{
    if (!agenda_add(&world->agenda, task))
        world_problem(world, INV_WORLD, "the agenda is full");
}

static void story_event(const struct world *world, const struct elastic_event *event)
{
    if (!world->verbose)
        return;
    char list[256] = "";
    size_t length = 0;
    for (size_t i = 0; event->hosts != NULL && i < event->hosts->count; i++)
        length += (size_t)snprintf(list + length, sizeof(list) - length, " %s:%d",
                                   event->hosts->items[i].name, event->hosts->items[i].slots);
    const bool by_host = event->host >= 0 && event->host < world->number_count;
    world_story(world, "event %s host %s(%d) seat %d local %d code %d%s epoch %u request %llu %s%s",
                elastic_event_name(event->kind),
                by_host ? world->hosts[world->by_number[event->host]].name : "-", event->host,
                event->seat, event->local_rank, event->code, event->signaled ? " signaled" : "",
                event->epoch, (unsigned long long)event->request,
                event->text != NULL ? event->text : "", list);
}

static void story_action(struct world *world, const struct elastic_action *action)
{
    if (!world->verbose)
        return;
    const bool by_host = action->host >= 0 && action->host < world->number_count;
    world_story(world, "   -> %s host %s(%d) seat %d epoch %u request %llu grace %lld %s",
                elastic_action_name(action->kind),
                by_host ? world->hosts[world->by_number[action->host]].name : "-", action->host,
                action->seat, action->epoch, (unsigned long long)action->request,
                (long long)action->grace_ms, action->text != NULL ? action->text : "");
}

/* What comes twice in a row must change nothing; only for events that cannot fit again. */
static bool may_repeat(struct world *world, const struct elastic_event *event)
{
    if (event->kind == ELASTIC_HOSTS || event->kind == ELASTIC_TICK ||
        event->kind == ELASTIC_DISCOVERY_FAILED)
        return false;
    if (event->kind == ELASTIC_ASKED && world->requests[event->request - 1].answered)
        return false;
    for (size_t i = 0; i < world->core.actions.count; i++) {
        if (world->core.actions.items[i].kind == ELASTIC_CALL)
            return false;
    }
    return true;
}

static void repeat(struct world *world, const struct elastic_event *event, int64_t now_ms)
{
    const enum elastic_state state = core_state(&world->core);
    core_event(&world->core, event, now_ms);
    if (world->core.actions.count > 0)
        world_problem(world, INV_REPEAT, "'%s' came twice, the second one gave '%s'",
                      elastic_event_name(event->kind),
                      elastic_action_name(world->core.actions.items[0].kind));
    if (core_state(&world->core) != state)
        world_problem(world, INV_REPEAT, "'%s' came twice, the second one changed the state",
                      elastic_event_name(event->kind));
}

void world_tell(struct world *world, const struct elastic_event *event)
{
    if (world->broken != INV_NONE)
        return;
    world->steps++;
    story_event(world, event);
    const int64_t now_ms = core_now(world);
    if (now_ms > world->core_last_ms)
        world->core_last_ms = now_ms;
    world->state_before = core_state(&world->core);
    check_before(world);
    driver_told(world, event);
    core_event(&world->core, event, now_ms);
    statistics_event(world, event);
    for (size_t i = 0; i < world->core.actions.count && world->broken == INV_NONE; i++) {
        const struct elastic_action *action = &world->core.actions.items[i];
        story_action(world, action);
        check_action(world, action);
        if (world->broken == INV_NONE)
            driver_do(world, action);
    }
    if (event->kind == ELASTIC_END && !world->verdict)
        driver_end(world); /* its own wish needs no VERDICT */
    if (world->broken == INV_NONE)
        check_after(world, event);
    if (world->verbose && core_state(&world->core) != world->state_before)
        world_story(world, "   == %s (deadline %lld)", elastic_state_name(core_state(&world->core)),
                    (long long)core_deadline(&world->core) - world->offset_ms - WORLD_START_MS);
    if (world->broken == INV_NONE && world->schedule->repeats > 0 && may_repeat(world, event) &&
        rng_chance(&world->rng, world->schedule->repeats))
        repeat(world, event, now_ms);
}

static void benign(struct world *world)
{
    world->benign = true;
    world->late_ms = 0;
    world->crashy_until_ms = 0;
    world->benign_at_ms = world->now_ms;
    world_story(world, "-- from now on nothing goes wrong any more");
    workers_benign(world);
    hosts_benign(world);
}

static void fault(struct world *world, const struct fault *fault_)
{
    world_story(world, "!! %s %d %lld", fault_name(fault_->kind), fault_->host,
                (long long)fault_->value);
    switch (fault_->kind) {
    case FAULT_JUMP:
        world->offset_ms += fault_->value;
        world->jumped = true;
        break;
    case FAULT_LATE_TICKS: world->late_ms = fault_->value; break;
    case FAULT_CRASHY: world->crashy_until_ms = world->now_ms + fault_->value; break;
    case FAULT_END: world_tell(world, &(struct elastic_event){.kind = ELASTIC_END}); break;
    case FAULT_PROGRESS:
        if (world->started_count > 0)
            world_tell(world, &(struct elastic_event){.kind = ELASTIC_PROGRESSED});
        break;
    case FAULT_STRAY_ASK:
    case FAULT_STRAY_EVENT: stray_fault(world, fault_); break;
    case FAULT_CRASH:
    case FAULT_EXIT_0:
    case FAULT_HANG:
    case FAULT_STUBBORN:
    case FAULT_REACTION:
    case FAULT_ASK:
    case FAULT_DROP_ASK: workers_fault(world, fault_); break;
    default: hosts_fault(world, fault_); break;
    }
}

static void run_task(struct world *world, const struct task *task)
{
    if (task->link != 0 && task->link != world->hosts[task->host].link)
        return;
    switch (task->kind) {
    case TASK_FAULT: fault(world, &world->schedule->faults[task->value]); break;
    case TASK_TELL:
        if (task->event.kind != ELASTIC_ASKED || worker_may_ask(world, task->event.request))
            world_tell(world, &task->event);
        break;
    case TASK_BENIGN: benign(world); break;
    case TASK_READY: driver_ready(world, task); break;
    case TASK_CALLED:
    case TASK_SILENCE:
    case TASK_VANISH: hosts_task(world, task); break;
    case TASK_HANG: hangs_task(world, task); break;
    default: workers_task(world, task); break;
    }
}

/* When the core's timer fires, in the world's time; -1: never. */
static int64_t tick_at(struct world *world)
{
    const int64_t deadline = core_deadline(&world->core);
    if (deadline == -1)
        return -1;
    int64_t at_ms = deadline - world->offset_ms - WORLD_START_MS;
    if (world->late_ms > 0)
        at_ms += rng_between(&world->rng, 0, world->late_ms);
    return at_ms > world->now_ms ? at_ms : world->now_ms;
}

static void step(struct world *world)
{
    const struct task *next = agenda_first(&world->agenda);
    const int64_t tick_ms = tick_at(world);
    if (tick_ms != -1 && (next == NULL || tick_ms <= next->at_ms)) {
        world->now_ms = tick_ms;
        world_tell(world, &(struct elastic_event){.kind = ELASTIC_TICK});
    } else if (next != NULL) {
        const struct task task = agenda_take(&world->agenda);
        if (task.at_ms > world->now_ms)
            world->now_ms = task.at_ms;
        run_task(world, &task);
    } else {
        world_problem(world, INV_ENDS, "nothing is going to happen any more, in state '%s'",
                      elastic_state_name(core_state(&world->core)));
    }
}

/* Long enough for every limit to expire many times: what takes longer does not end. */
static int64_t patience(const struct elastic_config *config)
{
    return 3600000 + 20 * (config->elastic_timeout_ms + config->rejoin_timeout_ms +
                           config->prepare_timeout_ms + config->grow_delay_ms + config->grace_ms +
                           config->orderly_grace_ms + config->cooldown_max_ms +
                           config->reconnect_max_ms + config->suspect_ms + config->patience_ms);
}

static void reset(struct world *world, const struct schedule *schedule, enum mutation mutation)
{
    memset(world, 0, offsetof(struct world, verbose));
    world->schedule = schedule;
    world->rng = rng_stream(schedule->seed, 2);
    world->work_left_ms = schedule->work_ms;
    agenda_clear(&world->agenda);
    hosts_reset(world);
    core_create(&world->core, &schedule->config, core_now(world), mutation);
    world->waiting_since_ms = core_now(world);
    world->state_since_ms = world->core_last_ms = core_now(world);
    world->grow_since_ms = -1;
}

static void plan_agenda(struct world *world)
{
    int64_t last_ms = 0;
    for (int i = 0; i < world->schedule->fault_count; i++) {
        const struct fault *fault_ = &world->schedule->faults[i];
        /* what happens at time 0 happens before the first discovery is told */
        if (fault_->at_ms == 0)
            fault(world, fault_);
        else
            world_add(world,
                      &(struct task){.at_ms = fault_->at_ms, .kind = TASK_FAULT, .value = i});
        if (fault_->at_ms > last_ms)
            last_ms = fault_->at_ms;
    }
    world_add(world, &(struct task){.at_ms = last_ms + 1000, .kind = TASK_BENIGN});
}

enum invariant world_run(struct world *world, const struct schedule *schedule,
                         enum mutation mutation)
{
    reset(world, schedule, mutation);
    plan_agenda(world);
    if (!world->discovery_failed_first)
        hosts_discover(world, false);
    const int64_t limit_ms = patience(&schedule->config);
    while (world->broken == INV_NONE && !world->over) {
        step(world);
        if (world->steps > WORLD_STEPS)
            world_problem(world, INV_ENDS, "more than %d events", WORLD_STEPS);
        if (world->benign && world->now_ms > world->benign_at_ms + limit_ms)
            world_problem(world, INV_ENDS, "no end long after the last fault, in state '%s'",
                          elastic_state_name(core_state(&world->core)));
    }
    if (world->broken == INV_NONE)
        check_end(world);
    statistics_end(world);
    core_destroy(&world->core);
    return world->broken;
}
