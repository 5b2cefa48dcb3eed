/* SPDX-License-Identifier: Apache-2.0 */
#include "model/elastic/facts.h"

#include "model/elastic/clock.h"
#include "model/elastic/job.h"
#include "model/elastic/members.h"

int64_t elastic_deadline(const struct elastic *e)
{
    if (e->state == ELASTIC_DONE)
        return -1;
    int64_t next = elastic_clock_next(e);
    return next == INT64_MAX ? -1 : next;
}

enum elastic_state elastic_state(const struct elastic *e)
{
    return e->state;
}

int elastic_host_count(const struct elastic *e)
{
    return e->hosts.count;
}

int elastic_host_number(const struct elastic *e, const char *name)
{
    return elastic_hosts_number(&e->hosts, name);
}

struct elastic_host_facts elastic_host_facts(const struct elastic *e, int number)
{
    const struct elastic_host *host = elastic_hosts_at(&e->hosts, number);
    if (host == NULL)
        return (struct elastic_host_facts){.state = ELASTIC_HOST_ABSENT, .drain_deadline_ms = -1};
    return (struct elastic_host_facts){
        .entry = &e->hosts.names.items[number],
        .state = host->state,
        .slots = host->slots,
        .blacklisted_slots = host->blacklisted_slots,
        .workers = host->live,
        .spare = e->plan.epoch > 0 && elastic_hosts_usable(host) > 0 && host->live == 0 &&
                 !elastic_members_use(e, number),
        .blacklisted_until_ms = host->record.blacklisted_until_ms,
        .drain_deadline_ms = host->drain_deadline_ms,
    };
}

const struct elastic_plan *elastic_newcomers(const struct elastic *e)
{
    return e->newcomers.stage == ELASTIC_NEWCOMERS_NONE ? NULL : &e->newcomers.plan;
}

const struct elastic_plan *elastic_plan(const struct elastic *e)
{
    return e->plan.epoch > 0 ? &e->plan : NULL;
}

struct elastic_worker_facts elastic_worker_facts(const struct elastic *e, int seat)
{
    const struct elastic_worker *worker = elastic_workers_at(&e->workers, seat);
    if (worker == NULL)
        return (struct elastic_worker_facts){
            .state = ELASTIC_WORKER_FREE, .host = -1, .slot = -1, .rank = -1, .local_rank = -1};
    return (struct elastic_worker_facts){
        .state = worker->state,
        .host = worker->host,
        .slot = worker->slot,
        .rank = worker->rank,
        .local_rank = worker->local_rank,
        .registered = worker->registered,
        .member = worker->placed &&
                  (elastic_worker_stays(worker) || worker->state == ELASTIC_WORKER_KILLED),
    };
}

int elastic_seat_count(const struct elastic *e)
{
    return e->workers.count;
}

int elastic_cause_seat(const struct elastic *e)
{
    const struct elastic_failure *cause = &e->change.cause;
    return cause->kind == ELASTIC_FAILURE_CRASH ? cause->seat : -1;
}

const struct elastic_facts *elastic_facts(const struct elastic *e)
{
    return &e->facts;
}

const struct elastic_verdict *elastic_verdict(const struct elastic *e)
{
    return &e->verdict;
}
