/* SPDX-License-Identifier: Apache-2.0 */
#include "model/elastic/parts.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "model/elastic/newcomers.h"
#include "model/elastic/placement.h"

static bool can_stay(const struct elastic *e, const struct elastic_worker *worker)
{
    return worker->state == ELASTIC_WORKER_ASKED &&
           elastic_hosts_slot_usable(&e->hosts.items[worker->host], worker->slot);
}

int elastic_members_survivors(const struct elastic *e)
{
    int count = 0;
    for (int seat = 0; seat < e->workers.count; seat++)
        count += can_stay(e, &e->workers.items[seat]);
    return count;
}

static int by_rank(const void *left, const void *right)
{
    const struct elastic_survivor *a = left, *b = right;
    return (a->rank > b->rank) - (a->rank < b->rank);
}

/* In the order of their last ranks. The caller owns it. */
static struct elastic_survivor *list_survivors(const struct elastic *e, int *count)
{
    size_t room = (size_t)e->workers.in_state[ELASTIC_WORKER_ASKED] + 1;
    struct elastic_survivor *survivors = mem_array(room, sizeof(*survivors));
    *count = 0;
    for (int seat = 0; seat < e->workers.count; seat++) {
        const struct elastic_worker *worker = &e->workers.items[seat];
        if (can_stay(e, worker))
            survivors[(*count)++] =
                (struct elastic_survivor){seat, worker->host, worker->slot, worker->rank};
    }
    qsort(survivors, (size_t)*count, sizeof(*survivors), by_rank);
    return survivors;
}

static void note_places(struct elastic *e, const struct elastic_choice *choice,
                        const struct elastic_placement *placement)
{
    for (int i = 0; i < choice->count; i++) {
        if (placement->places[i] >= 0)
            e->hosts.items[choice->hosts[i]].next_place = placement->places[i];
    }
}

/* The places that the plan gives count from its start on. Survivors have an order of their own, so
 * after them the places begin anew. */
static void take_places(struct elastic *e)
{
    for (int i = 0; i < e->hosts.count; i++) {
        e->hosts.items[i].holds_place = false;
        if (!e->plan.fresh)
            e->hosts.items[i].place = -1;
    }
    for (int h = 0; h < e->plan.host_count; h++) {
        struct elastic_host *host = &e->hosts.items[e->plan.hosts[h]];
        host->holds_place = true;
        host->place = e->plan.fresh ? host->next_place : h;
        host->member_epoch = e->plan.epoch;
    }
}

/* Empties `next`, the plan without its numbers. PREPARE. */
static void prepare(struct elastic *e, struct elastic_plan *next, uint32_t epoch, bool fresh)
{
    struct elastic_plan *plan = &e->plan;
    elastic_plan_move(plan, next);
    plan->epoch = epoch;
    plan->restart_count = fresh ? e->fresh_started : e->fresh_started - 1;
    plan->fresh = fresh;
    for (int seat = 0; seat < e->workers.count; seat++)
        e->workers.items[seat].placed = false;
    for (int r = 0; r < plan->size; r++) {
        struct elastic_member *member = &plan->members[r];
        if (member->is_new)
            member->seat = elastic_workers_seat(&e->workers, member->host, member->slot);
        e->workers.items[member->seat].placed = true;
    }
    for (int h = 0; h < plan->host_count; h++)
        e->hosts.items[plan->hosts[h]].prepared_epoch = epoch;
    bool restarts = fresh && plan->restart_count > 0;
    e->change.planned_ms = e->now_ms;
    e->timers[ELASTIC_TIMER_PREPARE] =
        e->now_ms + e->config.prepare_timeout_ms + (restarts ? e->config.hold_ms : 0);
    e->state = ELASTIC_PREPARING;
    elastic_emit(e, ELASTIC_PREPARE)->epoch = epoch;
}

void elastic_members_prepare(struct elastic *e, const struct elastic_choice *choice)
{
    int survivor_count = 0;
    struct elastic_survivor *survivors AUTO_FREE = list_survivors(e, &survivor_count);
    struct elastic_placement placement;
    elastic_choice_place(e, choice, survivors, survivor_count, &placement);
    prepare(e, &placement.plan, ++e->last_epoch, survivor_count == 0);
    note_places(e, choice, &placement);
    elastic_placement_clear(&placement);
}

bool elastic_members_can_join(const struct elastic *e)
{
    if (!elastic_newcomers_complete(e))
        return false;
    int count = 0;
    struct elastic_survivor *survivors AUTO_FREE = list_survivors(e, &count);
    return elastic_newcomers_expect(e, survivors, count);
}

/* Only who and where; the caller owns it. */
static struct elastic_plan copy_plan(const struct elastic_plan *plan)
{
    return (struct elastic_plan){
        .size = plan->size,
        .members = mem_dup(plan->members, (size_t)plan->size * sizeof(*plan->members)),
        .host_count = plan->host_count,
        .hosts = mem_dup(plan->hosts, (size_t)plan->host_count * sizeof(*plan->hosts))};
}

/* The plan keeps the number that the newcomers know, unless another epoch has come after it. */
void elastic_members_join(struct elastic *e)
{
    struct elastic_plan next = copy_plan(&e->newcomers.plan);
    uint32_t theirs = e->newcomers.plan.epoch;
    for (int r = 0; r < next.size; r++)
        next.members[r].is_new = false; /* its process runs */
    prepare(e, &next, theirs > e->plan.epoch ? theirs : ++e->last_epoch, false);
}

static bool is_held(const struct elastic *e, const struct elastic_member *member)
{
    const struct elastic_worker *worker = elastic_workers_at(&e->workers, member->seat);
    return worker != NULL && worker->state == ELASTIC_WORKER_HELD && worker->host == member->host &&
           worker->slot == member->slot;
}

bool elastic_members_can_repair(const struct elastic *e)
{
    const int *in = e->workers.in_state;
    int held = 0;
    if (in[ELASTIC_WORKER_ASKED] > 0)
        return false;
    for (int r = 0; r < e->plan.size; r++) {
        const struct elastic_member *member = &e->plan.members[r];
        if (!elastic_hosts_slot_usable(&e->hosts.items[member->host], member->slot))
            return false;
        held += is_held(e, member);
    }
    const struct elastic_member *first = &e->plan.members[0];
    return held == in[ELASTIC_WORKER_HELD] && is_held(e, first) &&
           e->workers.items[first->seat].rejoins;
}

void elastic_members_repair(struct elastic *e)
{
    struct elastic_plan next = copy_plan(&e->plan);
    next.repairs = true;
    for (int r = 0; r < next.size; r++)
        next.members[r].is_new = !is_held(e, &next.members[r]);
    prepare(e, &next, ++e->last_epoch, false);
}

bool elastic_members_use(const struct elastic *e, int host)
{
    return e->plan.epoch > 0 && e->hosts.items[host].prepared_epoch == e->plan.epoch;
}

void elastic_members_cancel(struct elastic *e)
{
    elastic_emit(e, ELASTIC_CANCEL)->epoch = e->plan.epoch;
    elastic_workers_forget_planned(&e->workers);
    e->timers[ELASTIC_TIMER_PREPARE] = ELASTIC_OFF;
    e->release_again = true;
    e->call_again = true;
    e->state = ELASTIC_WAITING;
}

void elastic_members_avoid(struct elastic *e, int host)
{
    if (e->state == ELASTIC_PREPARING && elastic_members_use(e, host))
        elastic_members_cancel(e);
}

static void answer(struct elastic *e, const struct elastic_worker *worker, int seat)
{
    for (int i = 0; i < worker->request_count; i++) {
        struct elastic_action *action = elastic_emit(e, ELASTIC_ANSWER);
        action->request = worker->requests[i];
        action->seat = seat;
    }
}

/* Survivors get their places as answers, new workers in their environment. */
static void start_members(struct elastic *e)
{
    for (int r = 0; r < e->plan.size; r++) {
        const struct elastic_member *member = &e->plan.members[r];
        struct elastic_worker *worker = &e->workers.items[member->seat];
        worker->rank = member->rank;
        worker->local_rank = member->local_rank;
        if (member->is_new) {
            elastic_workers_move(&e->workers, member->seat, ELASTIC_WORKER_STARTING);
        } else {
            answer(e, worker, member->seat);
            elastic_workers_move(&e->workers, member->seat, ELASTIC_WORKER_RUNNING);
        }
    }
}

static void remove_asked(struct elastic *e, int seat)
{
    answer(e, &e->workers.items[seat], -1);
    elastic_workers_move(&e->workers, seat, ELASTIC_WORKER_REMOVED);
    elastic_workers_expect(&e->workers, seat,
                           e->now_ms + e->config.grace_ms + e->config.patience_ms);
}

static void remove_others(struct elastic *e)
{
    if (e->workers.in_state[ELASTIC_WORKER_ASKED] == 0)
        return;
    for (int seat = 0; seat < e->workers.count; seat++)
        if (e->workers.items[seat].state == ELASTIC_WORKER_ASKED)
            remove_asked(e, seat);
}

static bool holds_up(const struct elastic *e, const struct elastic_worker *worker)
{
    const struct elastic_host *host = &e->hosts.items[worker->host];
    return worker->state == ELASTIC_WORKER_ASKED && host->state == ELASTIC_HOST_DRAINING &&
           host->listed && host->relisted;
}

bool elastic_members_hold_up(const struct elastic *e)
{
    if (e->hosts.in_state[ELASTIC_HOST_DRAINING] == 0)
        return false;
    for (int seat = 0; seat < e->workers.count; seat++)
        if (holds_up(e, &e->workers.items[seat]))
            return true;
    return false;
}

void elastic_members_let_leave(struct elastic *e)
{
    for (int seat = 0; seat < e->workers.count; seat++)
        if (holds_up(e, &e->workers.items[seat]))
            remove_asked(e, seat);
}

/* What the change was about, for the facts of the epoch that it led to. */
static void note_coming(struct elastic *e)
{
    const struct elastic_change *change = &e->change;
    elastic_change_note_added(e);
    e->coming = (struct elastic_facts){
        .epoch = e->plan.epoch,
        .size = e->plan.size,
        .host_count = e->plan.host_count,
        .mode = change->open ? change->mode : ELASTIC_AUTO,
        .happened_ms = change->happened_ms,
        .detected_ms = change->detected_ms,
        .agreed_ms = change->agreed_ms,
        .planned_ms = change->planned_ms,
        .started_ms = e->now_ms,
    };
    snprintf(e->coming.cause, sizeof(e->coming.cause), "%s", buf_text(&change->text));
}

static bool takes_newcomers(const struct elastic *e)
{
    for (int r = 0; r < e->plan.size; r++)
        if (e->workers.items[e->plan.members[r].seat].state == ELASTIC_WORKER_READY)
            return true;
    return false;
}

void elastic_members_start(struct elastic *e)
{
    for (int t = 0; t < ELASTIC_TIMERS; t++)
        if (t != ELASTIC_TIMER_NEWCOMERS) /* they are prepared beside every epoch */
            e->timers[t] = ELASTIC_OFF;
    bool join = elastic_newcomers_complete(e) && takes_newcomers(e);
    if (join) {
        elastic_newcomers_forget(e); /* they have joined */
        e->refills += e->refill;
    }
    elastic_emit(e, ELASTIC_START)->epoch = e->plan.epoch;
    start_members(e);
    remove_others(e);
    e->shrunk = e->plan.size < e->coming.size;
    e->refill = e->shrunk || (e->refill && !join);
    note_coming(e);
    take_places(e);
    elastic_change_close(e);
    e->started++;
    e->fresh_started += e->plan.fresh;
    e->resumed = false;
    e->done = e->succeeded = 0;
    e->unread.kind = ELASTIC_FAILURE_NONE;
    e->waiting_said = false;
    e->release_again = true;
    if (e->workers.in_state[ELASTIC_WORKER_STARTING] > 0)
        e->timers[ELASTIC_TIMER_START] = e->now_ms + e->config.prepare_timeout_ms;
    elastic_workers_find_due(&e->workers);
    e->state = ELASTIC_RUNNING;
}

void elastic_members_resume(struct elastic *e)
{
    struct elastic_facts *facts = &e->facts;
    struct elastic_facts sums = *facts;
    *facts = e->coming;
    facts->resumed_ms = e->now_ms;
    facts->epochs = e->started;
    facts->crashes = sums.crashes;
    facts->hosts_lost = sums.hosts_lost;
    facts->preemptions = sums.preemptions;
    facts->grown = sums.grown;
    facts->lost_ms = sums.lost_ms;
    if (e->started > 1)
        facts->lost_ms += e->now_ms - facts->happened_ms;
    e->resumed = e->grow_again = true;
    e->timers[ELASTIC_TIMER_START] = ELASTIC_OFF;
    elastic_emit(e, ELASTIC_RESUMED)->epoch = e->plan.epoch;
}
