/* SPDX-License-Identifier: Apache-2.0 */
#include "model/elastic/parts.h"

#include <stdarg.h>
#include <stdio.h>
#include <sysexits.h>

#include "model/elastic/job.h"
#include "model/elastic/newcomers.h"

/*
 * Crashes of the program. Each counts against its slot, until the slot is blacklisted. When the
 * program has crashed on every host, the program itself is at fault.
 */

/* Another usable host on which the program has not crashed lately. */
static bool elsewhere_it_runs(const struct elastic *e, int than)
{
    for (int i = 0; i < e->hosts.count; i++) {
        const struct elastic_host *host = &e->hosts.items[i];
        if (i != than && elastic_hosts_usable(host) > 0 &&
            !elastic_hosts_has_crashed(host, &e->config, e->now_ms))
            return true;
    }
    return false;
}

/* The program has lately crashed on every usable host, and on more than one. */
static bool crashes_everywhere(const struct elastic *e)
{
    int crashed = 0;
    for (int i = 0; i < e->hosts.count; i++)
        crashed += elastic_hosts_has_crashed(&e->hosts.items[i], &e->config, e->now_ms);
    return crashed > 1 && !elsewhere_it_runs(e, -1);
}

/* Counts this crash. False: the program is at fault, and the verdict is given. */
static bool count_crash(struct elastic *e, const struct elastic_failure *failure)
{
    struct elastic_host *host = &e->hosts.items[failure->host];
    if (!failure->signaled && failure->code == EX_CONFIG) { /* docs/exit-status.md */
        elastic_verdict_give(e, ELASTIC_END_FAULT, failure,
                             "%s, which says that no other try can succeed", failure->text);
        return false;
    }
    if (!elastic_hosts_slot_failed(host, failure->slot, &e->config, e->now_ms))
        return true;
    bool elsewhere = elsewhere_it_runs(e, failure->host);
    if (e->change.mode == ELASTIC_RESTART && e->config.max_restarts >= 0 &&
        !(elsewhere && elastic_slots_without(e, -1) > e->config.min_np))
        return true; /* the remaining restarts decide */
    if (!elsewhere) {
        elastic_verdict_give(e, ELASTIC_END_FAULT, failure,
                             "the program crashes on every host; the last crash: %s",
                             failure->text);
        return false;
    }
    elastic_blacklist_slot(e, failure->host, failure->slot);
    return true;
}

/* Changes. */

#define TEXT_MAX 500 /* of elastic_facts.cause */
#define SHOWN_ADDED_MAX 4

void elastic_change_note(struct elastic *e, const char *format, ...)
{
    char piece[400];
    va_list args;
    va_start(args, format);
    vsnprintf(piece, sizeof(piece), format, args);
    va_end(args);
    /* text that does not fit is omitted */
    buf_printf(&e->change.text, "%s%s", e->change.text.length > 0 ? "; " : "", piece);
}

void elastic_change_note_added(struct elastic *e)
{
    if (e->started == 0)
        return;
    struct elastic_change *change = &e->change;
    if (change->also == 1)
        elastic_change_note(e, "%s, too", change->also_first.text);
    else if (change->also > 1)
        elastic_change_note(e, "%s, and %d more failed, too", change->also_first.text,
                            change->also - 1);
    if (change->text.length == 0 && change->asker.text[0] != '\0' && !change->grows)
        elastic_change_note(e, "%s", change->asker.text);
    struct buf names AUTO_BUF = BUF_INIT(300);
    int added = 0, shown = 0;
    for (int h = 0; h < e->plan.host_count; h++) {
        int host = e->plan.hosts[h];
        if (e->hosts.items[host].member_epoch == e->coming.epoch)
            continue; /* it was in the last epoch that ran */
        added++;
        if (shown < SHOWN_ADDED_MAX &&
            buf_printf(&names, "%s%s", shown > 0 ? ", " : "", elastic_host_name(e, host)) == 0)
            shown++;
    }
    if (added > shown)
        elastic_change_note(e, "added %s and %d more", buf_text(&names), added - shown);
    else if (added > 0)
        elastic_change_note(e, "added %s", buf_text(&names));
    else if (change->text.length == 0 && change->grows)
        elastic_change_note(e, "%d more worker%s", e->plan.size - e->coming.size,
                            elastic_plural(e->plan.size - e->coming.size));
    if (change->grows && change->cause.kind == ELASTIC_FAILURE_NONE &&
        e->plan.size > e->coming.size)
        e->facts.grown++;
}

void elastic_change_close(struct elastic *e)
{
    struct elastic_change *change = &e->change;
    buf_destroy(&change->text);
    *change = (struct elastic_change){.text = BUF_INIT(TEXT_MAX)};
}

/* By what the workers support, unless the user has chosen. */
static enum elastic_mode pick_mode(const struct elastic *e)
{
    if (e->config.mode == ELASTIC_REJOIN || e->config.mode == ELASTIC_RESTART)
        return e->config.mode;
    for (int seat = 0; seat < e->workers.count; seat++) {
        const struct elastic_worker *worker = &e->workers.items[seat];
        if (worker->rejoins && elastic_worker_stays(worker))
            return ELASTIC_REJOIN;
    }
    return ELASTIC_RESTART;
}

bool elastic_change_rejoins(const struct elastic *e)
{
    return pick_mode(e) == ELASTIC_REJOIN;
}

static void open_change(struct elastic *e, int64_t happened_ms)
{
    struct elastic_change *change = &e->change;
    change->open = true;
    change->mode = pick_mode(e);
    change->detected_ms = e->now_ms;
    change->happened_ms = happened_ms;
    change->notify = false;
    /* an epoch that has never run prolongs the change that it came from */
    if (!e->resumed && e->started > 1) {
        if (e->coming.happened_ms < happened_ms)
            change->happened_ms = e->coming.happened_ms;
        if (e->coming.cause[0] != '\0')
            elastic_change_note(e, "%s", e->coming.cause);
    }
    e->grow_due_ms = -1;
    e->timers[ELASTIC_TIMER_GROW] = ELASTIC_OFF;
    e->timers[ELASTIC_TIMER_NOTIFY] = ELASTIC_OFF;
    e->timers[ELASTIC_TIMER_START] = ELASTIC_OFF;
}

static void stop_all(struct elastic *e, int64_t grace_ms)
{
    struct elastic_workers *workers = &e->workers;
    elastic_newcomers_forget(e);
    elastic_emit(e, ELASTIC_END_ALL)->grace_ms = grace_ms;
    for (int seat = 0; seat < workers->count; seat++) {
        const struct elastic_worker *worker = &workers->items[seat];
        if (elastic_worker_lives(worker) && worker->state != ELASTIC_WORKER_KILLED)
            elastic_workers_move(workers, seat, ELASTIC_WORKER_KILLED);
        if (worker->state == ELASTIC_WORKER_KILLED)
            elastic_workers_expect(workers, seat, INT64_MAX); /* the stop has its own limit */
    }
    e->change.stopped_ms = e->now_ms;
    e->timers[ELASTIC_TIMER_STOP] = e->now_ms + grace_ms + e->config.patience_ms;
    e->state = ELASTIC_STOPPING;
}

void elastic_change_expect(struct elastic *e, int seat)
{
    elastic_workers_expect(&e->workers, seat, e->now_ms + e->config.rejoin_timeout_ms);
}

void elastic_change_kill(struct elastic *e, int seat)
{
    e->change.killed++;
    elastic_remove(e, seat, ELASTIC_WORKER_KILLED);
}

void elastic_change_stuck(struct elastic *e, int seat)
{
    if (!e->change.stuck_said)
        elastic_say(
            e, ELASTIC_WARNING,
            "a worker ended while others were about to connect to it: killing and replacing "
            "those that wait for it");
    e->change.stuck_said = true;
    elastic_change_kill(e, seat);
}

/* All survivors are waited for, each with its own limit. */
static void agree(struct elastic *e)
{
    for (int seat = 0; seat < e->workers.count; seat++) {
        const struct elastic_worker *worker = &e->workers.items[seat];
        bool asks =
            worker->state == ELASTIC_WORKER_STARTING || worker->state == ELASTIC_WORKER_RUNNING;
        /* one that was removed holds the others up only as long as a survivor may */
        bool lingers = worker->state == ELASTIC_WORKER_REMOVED &&
                       worker->due_ms > e->now_ms + e->config.rejoin_timeout_ms;
        if (asks || lingers)
            elastic_change_expect(e, seat);
    }
    e->state = ELASTIC_AGREEING;
}

/* How the job ends if it does not go on after this. */
static enum elastic_end end_for(const struct elastic_failure *failure)
{
    if (failure->kind == ELASTIC_FAILURE_HUNG)
        return ELASTIC_END_HUNG;
    bool host = failure->kind == ELASTIC_FAILURE_LOST || failure->kind == ELASTIC_FAILURE_PREEMPTED;
    return host ? ELASTIC_END_HOST_LOST : ELASTIC_END_CRASH;
}

/* A program that reports no progress is never without it. False: there were too many restarts
 * without progress, and the verdict is given. */
static bool count_idle(struct elastic *e, const struct elastic_failure *failure)
{
    int limit = e->config.idle_restarts;
    if (failure->kind != ELASTIC_FAILURE_CRASH && failure->kind != ELASTIC_FAILURE_HUNG)
        return true;
    e->change.idle = e->idle;
    e->change.progressed = e->progressed;
    bool idle = e->fresh_started > 1 && e->reports && !e->progressed;
    e->idle = idle ? e->idle + 1 : 0;
    e->progressed = false;
    if (limit < 0 || e->idle < limit)
        return true;
    elastic_verdict_give(e, end_for(failure), failure,
                         "%s; %d restart%s in a row made no progress (--no-progress-restarts)",
                         failure->text, e->idle, elastic_plural(e->idle));
    return false;
}

/* False: the budget is used up, and the verdict is given. */
static bool charge(struct elastic *e, const struct elastic_failure *failure)
{
    struct elastic_change *change = &e->change;
    if (change->charged)
        return true;
    change->charged = true;
    bool preempted =
        failure->kind == ELASTIC_FAILURE_LOST || failure->kind == ELASTIC_FAILURE_PREEMPTED;
    int *used = preempted ? &e->preemptions : &e->restarts;
    int limit = preempted ? e->config.max_preemptions : e->config.max_restarts;
    ++*used;
    if (limit < 0 || *used <= limit)
        return count_idle(e, failure);
    elastic_verdict_give(
        e, end_for(failure), failure, "%s; no more restarts: %d allowed (--max-%s)%s",
        failure->text, limit, preempted ? "preemptions" : "restarts",
        !preempted && crashes_everywhere(e) ? "; the program crashes on every host" : "");
    return false;
}

static bool is_crash(const struct elastic_failure *failure)
{
    return failure->kind == ELASTIC_FAILURE_CRASH;
}

static void end_after_success(struct elastic *e, const struct elastic_failure *failure, int count)
{
    elastic_verdict_give(
        e, end_for(failure), failure,
        "%s; the workers do not start again, because %d of %d had exited with code 0",
        failure->text, count, e->plan.size);
}

/* Members that ended with 0 long before the failure had really finished: the job cannot go on
 * without them. Those that ended close to it do not count as success while others may rejoin. True:
 * the verdict is given. */
static bool ended_earlier(struct elastic *e, const struct elastic_failure *failure)
{
    struct elastic_change *change = &e->change;
    bool rejoins = change->mode == ELASTIC_REJOIN;
    if (e->done == 0 || (!rejoins && e->succeeded == 0))
        return false;
    if (rejoins && e->first_done.since_ms >= failure->since_ms - e->config.suspect_ms) {
        elastic_change_suspect(e, &e->first_done);
        e->done = 0;
        return false;
    }
    struct elastic_failure whom = *failure;
    if (failure->kind == ELASTIC_FAILURE_NONE) {
        whom = e->first_done;
        snprintf(whom.text, sizeof(whom.text), "%s", failure->text);
    }
    end_after_success(e, &whom, e->done);
    return true;
}

static void stop_job(struct elastic *e, const struct elastic_failure *failure)
{
    char done[64] = "";
    if (e->done > 0)
        snprintf(done, sizeof(done), ", after %d of %d workers had exited with code 0", e->done,
                 e->plan.size);
    elastic_verdict_give(e, end_for(failure), failure, "%s%s", failure->text, done);
}

static void say_what_follows(struct elastic *e, const struct elastic_failure *failure)
{
    const int *in = e->workers.in_state;
    const struct elastic_failure *done = &e->first_done;
    const char *follows = "the other workers rejoin";
    if (e->change.mode == ELASTIC_RESTART)
        follows = "all workers restart";
    else if (in[ELASTIC_WORKER_STARTING] + in[ELASTIC_WORKER_RUNNING] + in[ELASTIC_WORKER_ASKED] ==
             0)
        follows = "no worker remains";
    if (e->change.mode == ELASTIC_RESTART && e->done > 0 && done->seat != failure->seat)
        elastic_say(e, ELASTIC_WARNING, "%s; %s, also rank %d on %s, which had exited with code 0",
                    failure->text, follows, done->rank, elastic_host_name(e, done->host));
    else
        elastic_say(e, ELASTIC_WARNING, "%s; %s", failure->text, follows);
}

/* It may be a consequence, but the next epoch lacks its rank, too. */
static void fail_too(struct elastic *e, const struct elastic_failure *failure)
{
    struct elastic_change *change = &e->change;
    if (change->mode == ELASTIC_REJOIN && is_crash(failure) && change->also++ == 0)
        change->also_first = *failure;
}

void elastic_change_fail(struct elastic *e, const struct elastic_failure *failure)
{
    struct elastic_change *change = &e->change;
    if (change->cause.kind != ELASTIC_FAILURE_NONE) {
        fail_too(e, failure);
        return;
    }
    bool opens = !change->open;
    if (opens)
        open_change(e, failure->since_ms);
    else if (failure->since_ms < change->happened_ms)
        change->happened_ms = failure->since_ms;
    if (failure->kind == ELASTIC_FAILURE_HUNG && failure->seat < 0)
        change->mode = ELASTIC_RESTART; /* nobody would ask for a place */
    change->cause = *failure;
    elastic_change_note(e, "%s", failure->text);
    e->facts.crashes += is_crash(failure);
    if (e->config.mode == ELASTIC_STOP) {
        stop_job(e, failure);
        return;
    }
    if (ended_earlier(e, failure) || (is_crash(failure) && !count_crash(e, failure)) ||
        elastic_verdict_reset_limit(e) ||
        (change->mode == ELASTIC_RESTART && !charge(e, failure)) || !opens)
        return;
    say_what_follows(e, failure);
    if (change->mode == ELASTIC_RESTART)
        stop_all(e, e->config.grace_ms);
    else
        agree(e);
}

void elastic_change_revise(struct elastic *e, const struct elastic_failure *loss)
{
    struct elastic_change *change = &e->change;
    const struct elastic_failure crash = change->cause;
    elastic_say(e, ELASTIC_WARNING, "%s, before %s", loss->text, crash.text);
    elastic_hosts_slot_excused(&e->hosts.items[crash.host], crash.slot, &e->config, e->now_ms);
    e->facts.crashes--;
    change->cause = *loss;
    if (loss->since_ms < change->happened_ms)
        change->happened_ms = loss->since_ms;
    elastic_change_note(e, "%s before that", loss->text);
    if (change->charged) {
        change->charged = false;
        e->restarts--;
        e->idle = change->idle;
        e->progressed = change->progressed;
        charge(e, loss);
    }
}

void elastic_change_suspect(struct elastic *e, const struct elastic_failure *failure)
{
    if (e->change.suspect.kind != ELASTIC_FAILURE_NONE)
        return;
    e->change.suspect = *failure;
    e->change.suspect.kind = ELASTIC_FAILURE_CRASH;
}

void elastic_change_asked(struct elastic *e, int seat)
{
    struct elastic_change *change = &e->change;
    if (change->open)
        return;
    if (e->done > 0 && pick_mode(e) == ELASTIC_RESTART) {
        struct elastic_failure early = e->first_done; /* why it asks */
        elastic_change_fail(e, &early);
        return;
    }
    const struct elastic_worker *worker = &e->workers.items[seat];
    struct elastic_failure *asker = &change->asker;
    *asker = elastic_failure_of(e, ELASTIC_FAILURE_NONE, worker->host, -1, e->now_ms);
    snprintf(asker->text, sizeof(asker->text), "rank %d on %.200s asked to rejoin", worker->rank,
             elastic_host_name(e, worker->host));
    open_change(e, e->now_ms);
    if (ended_earlier(e, asker))
        return;
    if (change->mode == ELASTIC_REJOIN)
        agree(e);
    else if (!elastic_verdict_reset_limit(e) && charge(e, asker))
        stop_all(e, e->config.grace_ms);
}

void elastic_change_grow(struct elastic *e, int size)
{
    struct elastic_change *change = &e->change;
    change->grows = true;
    change->announced = size;
    if (pick_mode(e) == ELASTIC_REJOIN) {
        change->notify = true;
        change->pause_ms = 0;
        return;
    }
    open_change(e, e->now_ms);
    elastic_say(e, ELASTIC_NOTICE, "%d workers can run now instead of %d: all workers restart",
                size, e->plan.size);
    stop_all(e, e->config.orderly_grace_ms);
}

void elastic_change_withdraw(struct elastic *e)
{
    struct elastic_change *change = &e->change;
    change->grows = false;
    change->announced = 0;
    if (change->noticed)
        return; /* a host drains, too */
    change->notify = false;
    e->timers[ELASTIC_TIMER_NOTIFY] = ELASTIC_OFF;
}

void elastic_change_leave(struct elastic *e, int64_t grace_ms)
{
    struct elastic_change *change = &e->change;
    change->noticed = true;
    if (pick_mode(e) == ELASTIC_REJOIN || e->succeeded > 0) {
        change->notify = true;
        change->pause_ms = 0;
        return;
    }
    open_change(e, e->now_ms);
    struct elastic_failure drain = elastic_failure_of(e, ELASTIC_FAILURE_PREEMPTED, -1, -1, 0);
    snprintf(drain.text, sizeof(drain.text), "%.390s", buf_text(&change->text));
    if (!elastic_verdict_reset_limit(e) && charge(e, &drain))
        stop_all(e, grace_ms);
}

void elastic_change_agreed(struct elastic *e)
{
    struct elastic_change *change = &e->change;
    change->agreed_ms = e->now_ms;
    if (change->cause.kind == ELASTIC_FAILURE_NONE && change->suspect.kind != ELASTIC_FAILURE_NONE)
        elastic_change_fail(e, &change->suspect); /* the early 0 made its peers ask */
    if (e->state == ELASTIC_AGREEING)
        e->state = ELASTIC_WAITING;
}

void elastic_change_nobody_left(struct elastic *e)
{
    struct elastic_change *change = &e->change;
    const struct elastic_failure *cause = &change->cause;
    if (cause->kind == ELASTIC_FAILURE_NONE)
        cause = change->suspect.kind != ELASTIC_FAILURE_NONE ? &change->suspect : &change->asker;
    if (e->succeeded > 0) {
        end_after_success(e, cause, e->succeeded);
        return;
    }
    bool by_itself = change->killed == 0 && change->lost == 0 && change->aborted == 0;
    if (is_crash(cause) && e->resumed && by_itself &&
        e->workers.in_state[ELASTIC_WORKER_ASKED] == 0) {
        elastic_verdict_give(e, ELASTIC_END_FAULT, cause,
                             "every worker failed; the first failure: %s", cause->text);
        return;
    }
    struct elastic_failure payer = *cause;
    if (payer.kind == ELASTIC_FAILURE_NONE && change->noticed)
        payer.kind = ELASTIC_FAILURE_PREEMPTED;
    if (!charge(e, &payer))
        return;
    if (e->resumed)
        elastic_say(e, ELASTIC_WARNING,
                    "no worker that holds the job's state remains: all workers restart from what "
                    "the program has saved");
    change->fresh = true;
    change->mode = ELASTIC_RESTART;
    stop_all(e, e->config.grace_ms);
}
