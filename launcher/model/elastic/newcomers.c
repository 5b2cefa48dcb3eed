/* SPDX-License-Identifier: Apache-2.0 */
#include "model/elastic/newcomers.h"

bool elastic_newcomers_any(const struct elastic *e)
{
    return e->newcomers.stage != ELASTIC_NEWCOMERS_NONE;
}

void elastic_newcomers_begin(struct elastic *e, struct elastic_placement *placement)
{
    struct elastic_plan *plan = &e->newcomers.plan;
    elastic_plan_move(plan, &placement->plan);
    plan->epoch = ++e->last_epoch;
    plan->restart_count = e->fresh_started - 1;
    for (int r = 0; r < plan->size; r++) {
        struct elastic_member *member = &plan->members[r];
        if (!member->is_new)
            continue;
        member->seat = elastic_workers_seat(&e->workers, member->host, member->slot);
        e->hosts.items[member->host].newcomers_epoch = plan->epoch;
    }
    e->newcomers.stage = ELASTIC_NEWCOMERS_PREPARING;
    e->timers[ELASTIC_TIMER_NEWCOMERS] = e->now_ms + e->config.prepare_timeout_ms;
    elastic_emit(e, ELASTIC_PREPARE_NEWCOMERS)->epoch = plan->epoch;
}

void elastic_newcomers_start(struct elastic *e)
{
    const struct elastic_plan *plan = &e->newcomers.plan;
    e->timers[ELASTIC_TIMER_NEWCOMERS] = ELASTIC_OFF;
    elastic_emit(e, ELASTIC_START_NEWCOMERS)->epoch = plan->epoch;
    for (int r = 0; r < plan->size; r++) {
        const struct elastic_member *member = &plan->members[r];
        if (!member->is_new)
            continue;
        elastic_workers_move(&e->workers, member->seat, ELASTIC_WORKER_JOINING);
        e->workers.items[member->seat].rank = member->rank; /* the local rank comes with joining */
        elastic_workers_expect(&e->workers, member->seat, e->now_ms + e->config.prepare_timeout_ms);
    }
    e->newcomers.stage = ELASTIC_NEWCOMERS_STARTED;
}

void elastic_newcomers_prepare_failed(struct elastic *e, int host, const char *why)
{
    const struct elastic_plan *plan = &e->newcomers.plan;
    if (!elastic_newcomers_any(e))
        return;
    elastic_say(e, ELASTIC_WARNING, "could not start new workers on %s: %s",
                elastic_host_name(e, host), why != NULL ? why : "unknown cause");
    for (int r = 0; r < plan->size; r++) {
        const struct elastic_member *member = &plan->members[r];
        if (!member->is_new || member->host != host)
            continue;
        elastic_hosts_blacklist(&e->hosts, host, member->slot, &e->config, e->now_ms);
        e->call_again = true;
    }
}

void elastic_newcomers_failed(struct elastic *e, const struct elastic_failure *failure)
{
    struct elastic_host *host = &e->hosts.items[failure->host];
    elastic_say(e, ELASTIC_WARNING, "%s; it had not joined the job yet", failure->text);
    if (failure->kind != ELASTIC_FAILURE_CRASH)
        return;
    e->facts.crashes++;
    if (elastic_hosts_slot_failed(host, failure->slot, &e->config, e->now_ms))
        elastic_blacklist_slot(e, failure->host, failure->slot);
}

bool elastic_newcomers_complete(const struct elastic *e)
{
    const struct elastic_plan *plan = &e->newcomers.plan;
    if (e->newcomers.stage != ELASTIC_NEWCOMERS_STARTED)
        return false;
    for (int r = 0; r < plan->size; r++) {
        const struct elastic_member *member = &plan->members[r];
        if (member->is_new && e->workers.items[member->seat].state != ELASTIC_WORKER_READY)
            return false;
    }
    return true;
}

bool elastic_newcomers_expect(const struct elastic *e, const struct elastic_survivor *survivors,
                              int count)
{
    const struct elastic_plan *plan = &e->newcomers.plan;
    int found = 0;
    for (int r = 0; r < plan->size; r++) {
        if (plan->members[r].is_new)
            continue;
        if (found == count || survivors[found].seat != plan->members[r].seat)
            return false;
        found++;
    }
    return found == count;
}

/* The worker in the seat that a rank of their plan names; NULL: it is none of them, or it has gone.
 */
static const struct elastic_worker *newcomer(const struct elastic *e, int rank)
{
    const struct elastic_member *member = &e->newcomers.plan.members[rank];
    return member->is_new ? elastic_workers_at(&e->workers, member->seat) : NULL;
}

void elastic_newcomers_forget(struct elastic *e)
{
    struct elastic_newcomers *newcomers = &e->newcomers;
    const struct elastic_plan *plan = &newcomers->plan;
    bool planned = newcomers->stage == ELASTIC_NEWCOMERS_PREPARING;
    e->timers[ELASTIC_TIMER_NEWCOMERS] = ELASTIC_OFF;
    newcomers->stage = ELASTIC_NEWCOMERS_NONE;
    if (!planned)
        return;
    elastic_emit(e, ELASTIC_CANCEL_NEWCOMERS)->epoch = plan->epoch;
    for (int r = 0; r < plan->size; r++) {
        const struct elastic_worker *worker = newcomer(e, r);
        if (worker != NULL && worker->state == ELASTIC_WORKER_PLANNED)
            elastic_workers_free(&e->workers, plan->members[r].seat);
    }
    e->release_again = true;
}

void elastic_newcomers_dismiss(struct elastic *e)
{
    const struct elastic_plan *plan = &e->newcomers.plan;
    bool started = e->newcomers.stage == ELASTIC_NEWCOMERS_STARTED;
    elastic_newcomers_forget(e);
    e->grow_again = true;
    for (int r = 0; started && r < plan->size; r++) {
        const struct elastic_worker *worker = newcomer(e, r);
        if (worker != NULL &&
            (worker->state == ELASTIC_WORKER_JOINING || worker->state == ELASTIC_WORKER_READY))
            elastic_remove(e, plan->members[r].seat, ELASTIC_WORKER_DISMISSED);
    }
}

/* The seat may have been freed and taken again since. */
static bool is_there(const struct elastic *e, const struct elastic_member *member)
{
    const struct elastic_worker *worker = elastic_workers_at(&e->workers, member->seat);
    if (worker == NULL || worker->host != member->host || worker->slot != member->slot ||
        !elastic_hosts_slot_usable(&e->hosts.items[member->host], member->slot))
        return false;
    if (e->newcomers.stage == ELASTIC_NEWCOMERS_PREPARING)
        return worker->state == ELASTIC_WORKER_PLANNED && !worker->placed;
    return worker->state == ELASTIC_WORKER_JOINING || worker->state == ELASTIC_WORKER_READY;
}

/* The running epoch has the members that the plan counts on, in the same order. */
static bool members_fit(const struct elastic *e)
{
    const struct elastic_plan *plan = &e->newcomers.plan;
    int found = 0;
    for (int r = 0; r < plan->size; r++) {
        if (plan->members[r].is_new)
            continue;
        if (found == e->plan.size || e->plan.members[found].seat != plan->members[r].seat)
            return false;
        found++;
    }
    return found == e->plan.size;
}

void elastic_newcomers_check(struct elastic *e)
{
    const struct elastic_plan *plan = &e->newcomers.plan;
    if (!elastic_newcomers_any(e))
        return;
    bool fits = e->state != ELASTIC_RUNNING || members_fit(e);
    for (int r = 0; r < plan->size && fits; r++)
        fits = !plan->members[r].is_new || is_there(e, &plan->members[r]);
    if (!fits)
        elastic_newcomers_dismiss(e);
}
