/* SPDX-License-Identifier: Apache-2.0 */
#include "model/elastic/parts.h"

#include <stdio.h>

#include "model/elastic/newcomers.h"
#include "model/elastic/placement.h"

enum { LAST_CALLS_MS = 30 * 1000 }; /* before a job gives up, it calls all hosts */

void elastic_clock_wait(struct elastic *e, int64_t now_ms)
{
    int64_t all = e->config.elastic_timeout_ms;
    int64_t last = all / 2 < LAST_CALLS_MS ? all / 2 : LAST_CALLS_MS;
    e->timers[ELASTIC_TIMER_WAIT] = now_ms + all;
    if (e->config.max_np > 0) /* else all hosts are called at once */
        e->timers[ELASTIC_TIMER_SHORT] = now_ms + all - last;
}

static void short_over(struct elastic *e)
{
    e->call_again = true;
}

static void wait_over(struct elastic *e)
{
    struct elastic_choice choice;
    elastic_choice_make(e, &choice);
    int64_t found = choice.usable;
    elastic_choice_clear(&choice);
    elastic_verdict_no_hosts(e, e->started == 0 ? e->config.np : e->config.min_np, found);
}

static void grow_over(struct elastic *e)
{
    e->grow_again = true; /* and elastic_grow() finds that the delay has passed */
}

static void notify_again(struct elastic *e)
{
    e->change.notify = true;
}

static void prepare_over(struct elastic *e)
{
    elastic_verdict_give(
        e, ELASTIC_END_PREPARE, NULL, "could not prepare epoch %u on all its hosts within %lld s",
        (unsigned)e->plan.epoch, (long long)((e->now_ms - e->change.planned_ms) / 1000));
}

static void newcomers_over(struct elastic *e)
{
    elastic_say(e, ELASTIC_WARNING,
                "could not prepare new workers on all their hosts within %lld s; hvdrun will try "
                "again",
                (long long)(e->config.prepare_timeout_ms / 1000));
    elastic_newcomers_dismiss(e);
}

/* Gives up the hosts of all workers in this state. */
static void give_up_hosts(struct elastic *e, enum elastic_worker_state state, const char *why)
{
    for (int seat = 0; seat < e->workers.count && e->state != ELASTIC_ENDING; seat++)
        if (e->workers.items[seat].state == state)
            elastic_calls_give_up(e, e->workers.items[seat].host, why);
}

static void start_over(struct elastic *e)
{
    give_up_hosts(e, ELASTIC_WORKER_STARTING, "its agent did not start the workers in time");
}

static void stop_over(struct elastic *e)
{
    give_up_hosts(e, ELASTIC_WORKER_KILLED, "its agent did not terminate the workers in time");
    give_up_hosts(e, ELASTIC_WORKER_EXITED, "its agent did not finish with the workers in time");
}

/* Workers that have ended may have output left, so their hosts get more time. */
static void end_over(struct elastic *e)
{
    for (int seat = 0; seat < e->workers.count; seat++)
        if (elastic_worker_lives(&e->workers.items[seat]) || e->end_prolonged)
            if (elastic_workers_at(&e->workers, seat) != NULL)
                elastic_calls_give_up(e, e->workers.items[seat].host,
                                      "its agent did not terminate the workers in time");
    e->end_prolonged = true;
    e->timers[ELASTIC_TIMER_END] = e->now_ms + e->config.elastic_timeout_ms;
}

/* It was not ready in time. Its batch goes with it. */
static void newcomer_over(struct elastic *e, int seat)
{
    const struct elastic_worker *worker = &e->workers.items[seat];
    struct elastic_failure failure = elastic_failure_of(e, ELASTIC_FAILURE_CRASH, -1, seat, 0);
    snprintf(failure.text, sizeof(failure.text),
             "rank %d on %.200s did not come to the rendezvous within %lld s: killing it",
             worker->rank, elastic_host_name(e, worker->host),
             (long long)(e->config.elastic_timeout_ms / 1000));
    elastic_newcomers_dismiss(e);
    elastic_newcomers_failed(e, &failure);
}

static void worker_over(struct elastic *e, int seat)
{
    const struct elastic_worker *worker = &e->workers.items[seat];
    const char *host = elastic_host_name(e, worker->host);
    if (worker->state == ELASTIC_WORKER_JOINING) {
        newcomer_over(e, seat);
        return;
    }
    if (worker->state == ELASTIC_WORKER_KILLED || worker->state == ELASTIC_WORKER_DISMISSED) {
        elastic_calls_give_up(e, worker->host, "its agent did not terminate a worker in time");
        return;
    }
    if (worker->state == ELASTIC_WORKER_REMOVED) {
        elastic_say(e, ELASTIC_NOTICE, "%s: a removed worker did not exit in time: killing it",
                    host);
        elastic_remove(e, seat, ELASTIC_WORKER_KILLED);
        return;
    }
    elastic_say(e, ELASTIC_WARNING,
                "rank %d on %s did not rejoin within %lld s: killing and replacing it",
                worker->rank, host, (long long)(e->config.rejoin_timeout_ms / 1000));
    elastic_change_kill(e, seat);
}

static void workers_over(struct elastic *e)
{
    int64_t now = e->now_ms;
    for (int seat = 0; seat < e->workers.count && e->state != ELASTIC_ENDING; seat++) {
        const struct elastic_worker *worker = &e->workers.items[seat];
        if (elastic_worker_lives(worker) && worker->due_ms <= now)
            worker_over(e, seat);
    }
    elastic_workers_find_due(&e->workers);
}

/* That ELASTIC_TIMER_GATHER is over is seen by gather_until_ms. */
static void (*const over[ELASTIC_TIMERS])(struct elastic *e) = {
    [ELASTIC_TIMER_WAIT] = wait_over,
    [ELASTIC_TIMER_SHORT] = short_over,
    [ELASTIC_TIMER_GROW] = grow_over,
    [ELASTIC_TIMER_NOTIFY] = notify_again,
    [ELASTIC_TIMER_PREPARE] = prepare_over,
    [ELASTIC_TIMER_START] = start_over,
    [ELASTIC_TIMER_NEWCOMERS] = newcomers_over,
    [ELASTIC_TIMER_STOP] = stop_over,
    [ELASTIC_TIMER_END] = end_over,
};

/* The earliest timer, or -1. */
static int earliest(const struct elastic *e)
{
    int found = -1;
    for (int t = 0; t < ELASTIC_TIMERS; t++)
        if (e->timers[t] < ELASTIC_OFF && (found < 0 || e->timers[t] < e->timers[found]))
            found = t;
    return found;
}

int64_t elastic_clock_next(const struct elastic *e)
{
    int timer = earliest(e);
    int64_t next = timer >= 0 ? e->timers[timer] : INT64_MAX;
    if (e->state == ELASTIC_ENDING)
        return next;
    if (e->workers.due_ms < next)
        next = e->workers.due_ms;
    return e->hosts.due_ms < next ? e->hosts.due_ms : next;
}

bool elastic_clock_fire(struct elastic *e)
{
    int64_t next = elastic_clock_next(e);
    if (next > e->now_ms || next == INT64_MAX)
        return false;
    int timer = earliest(e);
    if (timer >= 0 && e->timers[timer] == next) {
        e->timers[timer] = ELASTIC_OFF;
        if (over[timer] != NULL)
            over[timer](e);
    } else if (e->hosts.due_ms == next) {
        elastic_calls_due(e);
    } else {
        workers_over(e);
    }
    return true;
}
