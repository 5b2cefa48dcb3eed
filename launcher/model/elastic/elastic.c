/* SPDX-License-Identifier: Apache-2.0 */
#include "model/elastic/elastic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "model/elastic/job.h"
#include "model/elastic/newcomers.h"
#include "model/elastic/parts.h"
#include "model/elastic/types.h"

/* What others may ask. */

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

int64_t elastic_promised_slots(const struct elastic *e)
{
    return elastic_calls_promised(e);
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

/* Begin and end. */

struct elastic *elastic_create(const struct elastic_config *config, int64_t now_ms)
{
    struct elastic *e = mem_alloc(sizeof(*e));
    e->config = *config;
    e->now_ms = now_ms;
    e->hosts.due_ms = INT64_MAX;
    e->workers.hosts = &e->hosts;
    e->workers.due_ms = INT64_MAX;
    e->gather_until_ms = e->grow_due_ms = -1;
    e->verdict = (struct elastic_verdict){.seat = -1, .rank = -1, .host = -1};
    for (int t = 0; t < ELASTIC_TIMERS; t++)
        e->timers[t] = ELASTIC_OFF;
    elastic_change_close(e);
    elastic_clock_wait(e, now_ms);
    return e;
}

void elastic_destroy(struct elastic *e)
{
    if (e == NULL)
        return;
    elastic_change_close(e);
    elastic_forget_texts(e);
    free(e->texts);
    free(e->discovery_problem);
    free(e->plan.members);
    free(e->plan.hosts);
    free(e->newcomers.plan.members);
    free(e->newcomers.plan.hosts);
    elastic_workers_destroy(&e->workers);
    elastic_hosts_destroy(&e->hosts);
    free(e);
}

void elastic_wait_anew(struct elastic *e, int64_t now_ms)
{
    if (e->timers[ELASTIC_TIMER_WAIT] != ELASTIC_OFF)
        elastic_clock_wait(e, now_ms);
}

typedef void handler(struct elastic *e, const struct elastic_event *event);

static struct elastic_host *host_of(const struct elastic *e, const struct elastic_event *event)
{
    return elastic_hosts_at(&e->hosts, event->host);
}

static bool host_is(const struct elastic *e, const struct elastic_event *event,
                    enum elastic_host_state state)
{
    const struct elastic_host *host = host_of(e, event);
    return host != NULL && host->state == state;
}

static bool has_agent(const struct elastic *e, const struct elastic_event *event)
{
    return host_is(e, event, ELASTIC_HOST_UP) || host_is(e, event, ELASTIC_HOST_DRAINING);
}

static void on_hosts(struct elastic *e, const struct elastic_event *event)
{
    if (event->hosts != NULL)
        elastic_listing_take(e, event->hosts);
}

static void on_discovery_failed(struct elastic *e, const struct elastic_event *event)
{
    const char *text = event->text != NULL ? event->text : "host discovery failed";
    if (event->first) {
        elastic_verdict_give(e, ELASTIC_END_DISCOVERY, NULL, "%s", text);
        return;
    }
    if (e->discovery_problem != NULL && strcmp(e->discovery_problem, text) == 0)
        return; /* it has been said, and may come every second */
    mem_replace(&e->discovery_problem, text);
    elastic_say(e, ELASTIC_WARNING, "%s; hvdrun keeps the hosts that it found before", text);
}

static void on_came(struct elastic *e, const struct elastic_event *event)
{
    if (host_is(e, event, ELASTIC_HOST_CALLING))
        elastic_calls_came(e, event->host, event->text);
}

static void on_unreached(struct elastic *e, const struct elastic_event *event)
{
    if (host_is(e, event, ELASTIC_HOST_CALLING))
        elastic_calls_unreached(e, event->host, event->text);
}

static void lost_ending(struct elastic *e, const struct elastic_event *event)
{
    if (has_agent(e, event))
        elastic_calls_lost(e, event->host, event->text, elastic_exits_happened(e, event),
                           event->first);
}

static void on_lost(struct elastic *e, const struct elastic_event *event)
{
    if (has_agent(e, event))
        lost_ending(e, event);
    else
        on_unreached(e, event);
}

static void on_drain(struct elastic *e, const struct elastic_event *event)
{
    if (host_of(e, event) != NULL)
        elastic_departures_drain(e, event->host, event->text,
                                 event->deadline_ms >= 0 ? event->deadline_ms : -1);
}

static void on_undrain(struct elastic *e, const struct elastic_event *event)
{
    if (host_of(e, event) != NULL)
        elastic_departures_undrain(e, event->host);
}

static void on_prepared(struct elastic *e, const struct elastic_event *event)
{
    const struct elastic_newcomers *newcomers = &e->newcomers;
    if (e->state == ELASTIC_PREPARING && event->epoch == e->plan.epoch)
        elastic_members_start(e);
    else if (newcomers->stage == ELASTIC_NEWCOMERS_PREPARING &&
             event->epoch == newcomers->plan.epoch)
        elastic_newcomers_start(e);
}

/* Also of an epoch that was cancelled for another host's failure: what one host cannot do it cannot
 * do in the next epoch either. */
static void on_prepare_failed(struct elastic *e, const struct elastic_event *event)
{
    struct elastic_host *host = host_of(e, event);
    if (!has_agent(e, event) || host->prepare_failed || event->epoch == 0)
        return;
    bool newcomers = event->epoch == host->newcomers_epoch;
    if (newcomers)
        host->newcomers_epoch = 0;
    if (newcomers && host->staying > 0)
        elastic_newcomers_prepare_failed(e, event->host, event->text);
    else if (newcomers ||
             (event->epoch == host->prepared_epoch && event->epoch != host->member_epoch))
        elastic_calls_prepare_failed(e, event->host, event->text, event->code);
}

static void on_registered(struct elastic *e, const struct elastic_event *event)
{
    int seat = elastic_workers_find(&e->workers, event->host, event->local_rank);
    if (seat >= 0)
        e->workers.items[seat].registered = e->workers.items[seat].rejoins = true;
}

static void on_asked(struct elastic *e, const struct elastic_event *event)
{
    int seat = elastic_workers_find(&e->workers, event->host, event->local_rank);
    if (seat < 0) {
        elastic_emit(e, ELASTIC_ANSWER)->request = event->request;
        return;
    }
    struct elastic_worker *worker = &e->workers.items[seat];
    if (worker->state == ELASTIC_WORKER_KILLED)
        return;                                   /* its end is its answer */
    if (worker->state == ELASTIC_WORKER_STARTING) /* its asking is proof enough */
        elastic_workers_move(&e->workers, seat, ELASTIC_WORKER_RUNNING);
    if (worker->state == ELASTIC_WORKER_RUNNING)
        elastic_workers_move(&e->workers, seat, ELASTIC_WORKER_ASKED);
    elastic_workers_hold(&e->workers, seat, event->request);
    worker->rejoins = true;
    if (e->state == ELASTIC_RUNNING)
        elastic_change_asked(e, seat);
}

static void on_ask_dropped(struct elastic *e, const struct elastic_event *event)
{
    int seat = elastic_workers_drop(&e->workers, event->request);
    if (seat < 0 || e->workers.items[seat].request_count > 0)
        return;
    if (e->state == ELASTIC_PREPARING)
        elastic_members_cancel(e);
    elastic_workers_move(&e->workers, seat, ELASTIC_WORKER_RUNNING);
    elastic_change_expect(e, seat);
    if (e->state == ELASTIC_WAITING)
        e->state = ELASTIC_AGREEING;
}

static void on_started(struct elastic *e, const struct elastic_event *event)
{
    const struct elastic_worker *worker = elastic_workers_at(&e->workers, event->seat);
    if (worker != NULL && worker->state == ELASTIC_WORKER_JOINING)
        elastic_workers_expect(&e->workers, event->seat, e->now_ms + e->config.elastic_timeout_ms);
    if (worker == NULL || worker->state != ELASTIC_WORKER_STARTING)
        return;
    int64_t due = worker->due_ms;
    elastic_workers_move(&e->workers, event->seat, ELASTIC_WORKER_RUNNING);
    elastic_workers_expect(&e->workers, event->seat, due);
}

static void on_can_join(struct elastic *e, const struct elastic_event *event)
{
    const struct elastic_worker *worker = elastic_workers_at(&e->workers, event->seat);
    if (worker != NULL && worker->state == ELASTIC_WORKER_JOINING)
        elastic_workers_move(&e->workers, event->seat, ELASTIC_WORKER_READY);
}

/* It cannot be told. At the gate it can wait for another worker with the same rank. Behind the gate
 * it would wait for several time-outs of Gloo, and abort. */
static void on_stuck(struct elastic *e, const struct elastic_event *event)
{
    const struct elastic_worker *worker = elastic_workers_at(&e->workers, event->seat);
    if (worker == NULL || !elastic_worker_stays(worker) || worker->state == ELASTIC_WORKER_ASKED)
        return;
    if (e->state == ELASTIC_RUNNING && e->done > 0) {
        struct elastic_failure early = e->first_done; /* that it waits for */
        elastic_change_fail(e, &early);
    }
    if (e->state != ELASTIC_AGREEING || worker->state == ELASTIC_WORKER_HELD)
        return;
    if (worker->state == ELASTIC_WORKER_STARTING)
        elastic_workers_move(&e->workers, event->seat, ELASTIC_WORKER_RUNNING);
    if (event->first)
        elastic_workers_move(&e->workers, event->seat, ELASTIC_WORKER_HELD);
    else
        elastic_change_stuck(e, event->seat);
}

static void on_finished(struct elastic *e, const struct elastic_event *event)
{
    const struct elastic_worker *worker = elastic_workers_at(&e->workers, event->seat);
    if (worker == NULL || worker->state != ELASTIC_WORKER_EXITED)
        return;
    const struct elastic_host *host = &e->hosts.items[worker->host];
    elastic_workers_free(&e->workers, event->seat);
    if (host->state == ELASTIC_HOST_DRAINING && host->seats == 0)
        e->release_again = true;
}

/* What was said before the failure may come after it, from another host: then that epoch has made
 * progress after all. */
static void on_progressed(struct elastic *e, const struct elastic_event *event)
{
    (void)event;
    e->reports = true;
    if (e->state == ELASTIC_RUNNING) {
        e->progressed = true;
    } else {
        e->idle = 0;
        e->change.progressed = true;
    }
}

/* With --on-hang restart. The host of the culprit counts a failure, as if it had been lost, and may
 * get onto the blacklist by that. It stays off the blacklist if the other hosts do not have min_np
 * slots. If the workers can rejoin, the culprit is killed, and a worker takes its place. Otherwise,
 * or if the seat is none of a member and nobody is to blame, all workers restart. */
static void on_hung(struct elastic *e, const struct elastic_event *event)
{
    const struct elastic_worker *worker = elastic_workers_at(&e->workers, event->seat);
    bool culprit = worker != NULL && elastic_worker_stays(worker);
    struct elastic_failure failure =
        elastic_failure_of(e, ELASTIC_FAILURE_HUNG, -1, culprit ? event->seat : -1, e->now_ms);
    failure.code = STATUS_HANG;
    if (culprit)
        snprintf(failure.text, sizeof(failure.text), "rank %d on %.200s hangs", worker->rank,
                 elastic_host_name(e, worker->host));
    else
        snprintf(failure.text, sizeof(failure.text), "the job hangs");
    bool alone = culprit && elastic_change_rejoins(e);
    if (culprit && e->hosts.items[failure.host].state == ELASTIC_HOST_UP)
        elastic_calls_count_hang(e, failure.host);
    if (alone)
        elastic_change_kill(e, failure.seat);
    elastic_change_fail(e, &failure);
}

static void on_unkilled(struct elastic *e, const struct elastic_event *event)
{
    if (host_of(e, event) != NULL)
        elastic_calls_unkilled(e, event->host, event->text);
}

static void on_end(struct elastic *e, const struct elastic_event *event)
{
    (void)event;
    elastic_verdict_driver(e);
}

/* Events without a handler do not fit the state and change nothing. */
#define DECIDING                                                                       \
    [ELASTIC_HOSTS] = on_hosts, [ELASTIC_DISCOVERY_FAILED] = on_discovery_failed,      \
    [ELASTIC_HOST_CAME] = on_came, [ELASTIC_HOST_UNREACHED] = on_unreached,            \
    [ELASTIC_HOST_LOST] = on_lost, [ELASTIC_HOST_DRAIN] = on_drain,                    \
    [ELASTIC_HOST_UNDRAIN] = on_undrain, [ELASTIC_PREPARE_FAILED] = on_prepare_failed, \
    [ELASTIC_REGISTERED] = on_registered, [ELASTIC_ASKED] = on_asked,                  \
    [ELASTIC_PREPARED] = on_prepared, [ELASTIC_STARTED] = on_started,                  \
    [ELASTIC_CAN_JOIN] = on_can_join, [ELASTIC_STUCK] = on_stuck,                      \
    [ELASTIC_EXITED] = elastic_exits_take, [ELASTIC_FINISHED] = on_finished,           \
    [ELASTIC_UNKILLED] = on_unkilled, [ELASTIC_PROGRESSED] = on_progressed, [ELASTIC_END] = on_end

static handler *const handlers[ELASTIC_STATES][ELASTIC_EVENTS] = {
    [ELASTIC_WAITING] = {DECIDING, [ELASTIC_ASK_DROPPED] = on_ask_dropped},
    [ELASTIC_PREPARING] = {DECIDING, [ELASTIC_ASK_DROPPED] = on_ask_dropped},
    [ELASTIC_RUNNING] = {DECIDING, [ELASTIC_HUNG] = on_hung},
    [ELASTIC_AGREEING] = {DECIDING, [ELASTIC_ASK_DROPPED] = on_ask_dropped},
    [ELASTIC_STOPPING] = {DECIDING},
    [ELASTIC_ENDING] = {[ELASTIC_HOST_LOST] = lost_ending,
                        [ELASTIC_EXITED] = elastic_exits_take,
                        [ELASTIC_FINISHED] = on_finished},
};

void elastic_event(struct elastic *e, const struct elastic_event *event, int64_t now_ms,
                   struct elastic_actions *actions)
{
    e->out = actions;
    elastic_forget_texts(e);
    if (now_ms > e->now_ms)
        e->now_ms = now_ms;
    bool tick = event->kind == ELASTIC_TICK && e->state != ELASTIC_DONE;
    handler *handle = handlers[e->state][event->kind];
    if (handle != NULL)
        handle(e, event);
    if (handle != NULL || tick)
        elastic_steps_settle(e);
    while (tick && e->state != ELASTIC_DONE && elastic_clock_fire(e))
        elastic_steps_settle(e);
    e->out = NULL;
}
