/* SPDX-License-Identifier: Apache-2.0 */
#include "model/elastic/parts.h"

#include <signal.h>
#include <stdio.h>

#include "model/elastic/newcomers.h"
#include "model/exit/record.h"

int64_t elastic_exits_happened(const struct elastic *e, const struct elastic_event *event)
{
    bool known = event->since_ms > 0 && event->since_ms < e->now_ms;
    return known ? event->since_ms : e->now_ms;
}

/* The worker that an EXITED is about, and what it would be as a failure; NULL: it does not fit. */
static const struct elastic_worker *exited(struct elastic *e, const struct elastic_event *event,
                                           struct elastic_failure *failure)
{
    const struct elastic_worker *worker = elastic_workers_at(&e->workers, event->seat);
    if (worker == NULL || !elastic_worker_lives(worker) || worker->state == ELASTIC_WORKER_PLANNED)
        return NULL;
    bool leaves = e->hosts.items[worker->host].state == ELASTIC_HOST_DRAINING;
    *failure = elastic_failure_of(e, leaves ? ELASTIC_FAILURE_PREEMPTED : ELASTIC_FAILURE_CRASH, -1,
                                  event->seat, elastic_exits_happened(e, event));
    failure->code = event->code;
    failure->signaled = event->signaled;
    struct buf how AUTO_BUF = BUF_INIT(64);
    if (event->signaled)
        exit_signal_name(event->code, &how);
    else
        buf_printf(&how, "%d%s", event->code, event->code == 0 ? " before its peers" : "");
    snprintf(failure->text, sizeof(failure->text), "rank %d on %.200s %s %s", worker->rank,
             elastic_host_name(e, worker->host),
             event->signaled ? "was killed by" : "exited with code", buf_text(&how));
    return worker;
}

static bool is_clean(const struct elastic_failure *failure)
{
    return failure->code == 0 && !failure->signaled;
}

/* A Horovod worker ends like this when a peer dies or does not come during a rendezvous. */
static bool is_abort(const struct elastic_failure *failure)
{
    return failure->signaled ? failure->code == SIGABRT : failure->code == 128 + SIGABRT;
}

/* For a worker that can rejoin, 0 means that the training is over. Any other program goes on from
 * its checkpoint when it starts again. */
static void count_success(struct elastic *e, const struct elastic_worker *worker)
{
    enum elastic_mode mode = e->config.mode;
    e->succeeded += mode != ELASTIC_RESTART && (mode == ELASTIC_REJOIN || worker->rejoins);
}

/* True: it was a newcomer, and its end is dealt with. */
static bool newcomer_exited(struct elastic *e, const struct elastic_worker *worker, int seat,
                            const struct elastic_failure *failure)
{
    if (!elastic_worker_is_newcomer(worker))
        return false;
    bool dismissed = worker->state == ELASTIC_WORKER_DISMISSED;
    bool joins = e->state == ELASTIC_PREPARING && worker->placed;
    elastic_workers_move(&e->workers, seat, ELASTIC_WORKER_EXITED);
    e->grow_again = true;
    if (dismissed)
        return true;
    elastic_newcomers_failed(e, failure);
    if (joins)
        elastic_members_cancel(e);
    return true;
}

/* The first failure opens a change; an exit with 0 counts as success while no peer fails. */
static void running(struct elastic *e, const struct elastic_worker *worker,
                    const struct elastic_failure *failure)
{
    if (!is_clean(failure)) {
        elastic_change_fail(e, failure);
        return;
    }
    count_success(e, worker);
    if (e->done == 0 || failure->since_ms < e->first_done.since_ms)
        e->first_done = *failure;
    e->done++;
}

/* WAITING, PREPARING, AGREEING: the first failure is the cause if none is known, the rest follows
 * from it. An exit with 0 does not count as success. */
static void changing(struct elastic *e, const struct elastic_worker *worker,
                     const struct elastic_failure *failure)
{
    if (e->state == ELASTIC_PREPARING && worker->placed)
        elastic_members_cancel(e);
    if (is_abort(failure) && e->change.cause.kind != ELASTIC_FAILURE_NONE)
        e->change.aborted++;
    else if (e->change.cause.kind != ELASTIC_FAILURE_NONE && !is_clean(failure))
        e->facts.crashes += failure->kind == ELASTIC_FAILURE_CRASH;
    if (!is_clean(failure)) {
        elastic_change_fail(e, failure);
        return;
    }
    count_success(e, worker);
    elastic_change_suspect(e, failure);
}

void elastic_exits_take(struct elastic *e, const struct elastic_event *event)
{
    struct elastic_failure failure;
    const struct elastic_worker *worker = exited(e, event, &failure);
    bool stops = e->state == ELASTIC_STOPPING, ends = e->state == ELASTIC_ENDING;
    if (worker == NULL || (!stops && !ends && newcomer_exited(e, worker, event->seat, &failure)))
        return;
    bool member = elastic_worker_stays(worker); /* else removed or killed: a consequence */
    elastic_workers_move(&e->workers, event->seat, ELASTIC_WORKER_EXITED);
    /* one that had ended before our signal was sent ended for a reason of its own */
    if (stops && worker->placed && !is_clean(&failure) && failure.since_ms < e->change.stopped_ms &&
        !e->change.fresh)
        elastic_change_fail(e, &failure);
    if (stops || ends || !member)
        return;
    if (e->state == ELASTIC_RUNNING)
        running(e, worker, &failure);
    else
        changing(e, worker, &failure);
}
