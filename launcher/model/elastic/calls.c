/* SPDX-License-Identifier: Apache-2.0 */
#include "model/elastic/parts.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

static bool is_blacklisted(const struct elastic_host *host)
{
    return elastic_hosts_blacklisted(host) || host->slots <= host->blacklisted_slots;
}

/* A drained host that was lost may come back as another machine. So may a blacklisted one, but it
 * is called only when it is listed anew, or if it dials in. Then its boot id tells. */
static bool can_be_called(const struct elastic *e, const struct elastic_host *host)
{
    bool may_be_another = host->unseen || e->config.hosts_dial_in;
    if (!host->listed || (is_blacklisted(host) && !may_be_another))
        return false;
    return host->state == ELASTIC_HOST_KNOWN ||
           (host->state == ELASTIC_HOST_AWAY && host->call_due_ms <= e->now_ms);
}

/* The time to find slots is nearly over, and they are still too few. */
static bool time_is_short(const struct elastic *e)
{
    return e->config.max_np > 0 && e->timers[ELASTIC_TIMER_WAIT] != ELASTIC_OFF &&
           e->timers[ELASTIC_TIMER_SHORT] == ELASTIC_OFF && e->gather_until_ms < 0;
}

/* A call that takes long, and one to a host that failed before, does not keep others from
 * being called. No call does when the time to find slots becomes short: otherwise the job could end
 * before a host that is up was called. */
static bool counts(const struct elastic *e, const struct elastic_host *host)
{
    if (host->state != ELASTIC_HOST_CALLING)
        return host->state == ELASTIC_HOST_UP;
    return !time_is_short(e) && host->problem == NULL &&
           e->now_ms < host->called_ms + ELASTIC_SLOW_CALL_MS;
}

/* The slots of this host that the job counts on. */
static int promised(const struct elastic *e, const struct elastic_host *host)
{
    return counts(e, host) ? elastic_hosts_promised(host) : 0;
}

int64_t elastic_calls_promised(const struct elastic *e)
{
    int64_t slots = 0;
    for (int i = 0; i < e->hosts.count; i++)
        slots += promised(e, &e->hosts.items[i]);
    return slots;
}

/* The job counts on the slots of a host that it is about to call. A job that waits does not count
 * on a host that has failed before, so it calls others, too. When its time becomes short it counts
 * on none. */
static bool is_promising(const struct elastic *e, const struct elastic_host *host)
{
    bool waits = e->state == ELASTIC_WAITING;
    return !is_blacklisted(host) && !(waits && host->problem != NULL) && !time_is_short(e);
}

void elastic_calls_make(struct elastic *e)
{
    int64_t limit = e->config.max_np > 0 ? e->config.max_np : INT64_MAX;
    int64_t slots = 0;
    int extra = 0;
    for (int i = 0; i < e->hosts.count; i++) {
        int more = promised(e, &e->hosts.items[i]);
        if (more == 0)
            continue;
        if (slots < limit)
            slots += more;
        else
            extra++;
    }
    for (int i = 0; i < e->hosts.count; i++) {
        const struct elastic_host *host = &e->hosts.items[i];
        if (!can_be_called(e, host))
            continue;
        if (slots < limit)
            slots += is_promising(e, host) ? host->slots - host->blacklisted_slots : 0;
        else if (extra < e->config.spares)
            extra++;
        else
            return;
        elastic_hosts_move(&e->hosts, i, ELASTIC_HOST_CALLING);
        if (e->config.max_np > 0) /* else all are called anyway */
            elastic_hosts_called(&e->hosts, i, e->now_ms);
        elastic_emit(e, ELASTIC_CALL)->host = i;
    }
}

void elastic_calls_came(struct elastic *e, int number, const char *boot_id)
{
    struct elastic_host *host = &e->hosts.items[number];
    elastic_hosts_move(&e->hosts, number, ELASTIC_HOST_UP);
    host->came_ms = e->now_ms;
    host->unseen = false;
    mem_replace(&host->problem, NULL);
    if (boot_id != NULL) {
        if (host->boot_id != NULL && strcmp(boot_id, host->boot_id) != 0)
            elastic_hosts_clear_records(host);
        mem_replace(&host->boot_id, boot_id);
    }
    e->grow_again = true;
    if (host->drained) { /* still the machine that drains */
        elastic_hosts_move(&e->hosts, number, ELASTIC_HOST_DRAINING);
        e->release_again = true;
    }
}

static void away(struct elastic *e, int number)
{
    elastic_hosts_move(&e->hosts, number, ELASTIC_HOST_AWAY);
    e->call_again = true;
    struct elastic_host *host = &e->hosts.items[number];
    if (!host->listed || host->relisted)
        elastic_hosts_undrain(host);
    if (host->listed)
        elastic_hosts_back_off(&e->hosts, number, e->config.reconnect_min_ms,
                               e->config.reconnect_max_ms, e->now_ms);
    else
        elastic_hosts_move(&e->hosts, number, ELASTIC_HOST_ABSENT);
}

void elastic_calls_unreached(struct elastic *e, int number, const char *text)
{
    struct elastic_host *host = &e->hosts.items[number];
    const char *why = text != NULL ? text : "could not reach it";
    if (host->problem == NULL || strcmp(host->problem, why) != 0)
        elastic_say(e, ELASTIC_WARNING, "%s: %s; hvdrun will try again",
                    elastic_host_name(e, number), why);
    mem_replace(&host->problem, why);
    away(e, number);
}

static void count_lost_host(struct elastic *e, int number)
{
    struct elastic_host *host = &e->hosts.items[number];
    if (!elastic_record_failure(&host->record, &e->config, e->now_ms))
        return;
    char why[64];
    snprintf(why, sizeof(why), "it was lost %d time%s", e->config.failure_limit,
             elastic_plural(e->config.failure_limit));
    elastic_blacklist(e, number, -1, why);
    if (!host->has_hung) /* else not all of them were losses */
        elastic_host_bad(e, number, "%s, the last time: %.200s", why, host->problem);
}

/* Without this host, enough to go on is left. */
static bool can_spare(const struct elastic *e, int number)
{
    return elastic_slots_without(e, number) >= e->config.min_np;
}

void elastic_calls_count_hang(struct elastic *e, int number)
{
    struct elastic_host *host = &e->hosts.items[number];
    host->has_hung = true;
    if (!elastic_record_failure(&host->record, &e->config, e->now_ms) || !can_spare(e, number))
        return;
    elastic_blacklist(e, number, -1, "the last failure there is a hang");
}

void elastic_calls_unkilled(struct elastic *e, int number, const char *text)
{
    if (elastic_hosts_blacklisted(&e->hosts.items[number]) || !can_spare(e, number))
        return;
    elastic_blacklist(e, number, -1, text != NULL ? text : "not even SIGKILL ends a process there");
    elastic_members_avoid(e, number); /* its agent has not ended the last epoch yet */
}

static void free_workers(struct elastic *e, int number)
{
    const struct elastic_host *host = &e->hosts.items[number];
    while (host->first_seat >= 0)
        elastic_workers_free(&e->workers, host->first_seat);
}

/* The lowest rank of this epoch that has exited there, and whose output is not complete; -1: none.
 */
static int unread_rank(const struct elastic *e, int number)
{
    int lowest = -1;
    if (e->state != ELASTIC_RUNNING && e->state != ELASTIC_ENDING)
        return lowest;
    for (int seat = e->hosts.items[number].first_seat; seat >= 0;
         seat = e->workers.items[seat].next) {
        const struct elastic_worker *worker = &e->workers.items[seat];
        if (worker->state == ELASTIC_WORKER_EXITED && worker->placed &&
            (lowest < 0 || worker->rank < lowest))
            lowest = worker->rank;
    }
    return lowest;
}

static void lose(struct elastic *e, int number, const char *text, int64_t since_ms, bool by_us,
                 bool explains)
{
    struct elastic_host *host = &e->hosts.items[number];
    struct elastic_change *change = &e->change;
    bool preempted = host->state == ELASTIC_HOST_DRAINING;
    bool had_members = host->staying > 0;
    struct elastic_failure failure = elastic_failure_of(
        e, preempted ? ELASTIC_FAILURE_PREEMPTED : ELASTIC_FAILURE_LOST, number, -1, since_ms);
    snprintf(failure.text, sizeof(failure.text), "lost %.200s: %.170s",
             elastic_host_name(e, number), text);
    bool planned = e->state == ELASTIC_PREPARING && elastic_members_use(e, number);
    int unread = unread_rank(e, number);
    mem_replace(&host->problem, text);
    free_workers(e, number);
    e->grow_again = true; /* dismissed newcomers may have been among them */
    if (e->now_ms - host->came_ms >= ELASTIC_STABLE_MS)
        host->delay_ms = 0;
    away(e, number);
    if (unread >= 0)
        elastic_verdict_unread(e, unread, &failure);
    bool ran_there = host->member_epoch == e->coming.epoch; /* all may be about to stop */
    bool revises = explains && ran_there && change->cause.kind == ELASTIC_FAILURE_CRASH;
    if (e->state == ELASTIC_ENDING) {
        if (revises)
            elastic_verdict_revise(e, &failure);
        return;
    }
    if ((!had_members || e->state != ELASTIC_RUNNING) && !revises)
        elastic_say(e, ELASTIC_WARNING, "%s", failure.text);
    /* what was there when the first failure came goes with it; what came later does not */
    bool consequence =
        change->cause.kind != ELASTIC_FAILURE_NONE && host->came_ms <= change->detected_ms;
    if (!preempted && (by_us || revises || !consequence))
        count_lost_host(e, number);
    e->facts.hosts_lost += !preempted;
    change->lost += change->open;
    if (planned)
        elastic_members_cancel(e);
    if (revises)
        elastic_change_revise(e, &failure);
    else if (had_members)
        elastic_change_fail(e, &failure);
}

void elastic_calls_lost(struct elastic *e, int number, const char *text, int64_t since_ms,
                        bool explains)
{
    lose(e, number, text != NULL ? text : "the connection to its agent ended", since_ms, false,
         explains);
}

void elastic_calls_give_up(struct elastic *e, int number, const char *text)
{
    elastic_emit(e, ELASTIC_GIVE_UP)->host = number;
    lose(e, number, text, e->now_ms, true, false);
}

static bool all_failed_to_prepare(const struct elastic *e)
{
    for (int i = 0; i < e->hosts.count; i++)
        if (e->hosts.items[i].listed && !e->hosts.items[i].prepare_failed)
            return false;
    return true;
}

void elastic_calls_prepare_failed(struct elastic *e, int number, const char *text, int code)
{
    struct elastic_host *host = &e->hosts.items[number];
    const char *why = text != NULL ? text : "hvdrun could not prepare the job there";
    host->prepare_failed = true;
    mem_replace(&host->problem, why);
    if (all_failed_to_prepare(e)) {
        struct elastic_failure failure = elastic_failure_of(e, ELASTIC_FAILURE_NONE, number, -1, 0);
        failure.code = code;
        elastic_verdict_give(e, ELASTIC_END_PREPARE, &failure, "%.200s: %.800s",
                             elastic_host_name(e, number), why);
        return;
    }
    elastic_blacklist(e, number, -1, why);
    elastic_members_avoid(e, number);
}

void elastic_calls_due(struct elastic *e)
{
    for (int i = 0; i < e->hosts.count && e->state != ELASTIC_ENDING; i++) {
        struct elastic_host *host = &e->hosts.items[i];
        if (host->state == ELASTIC_HOST_DRAINING && !host->expired &&
            host->drain_deadline_ms >= 0 && host->drain_deadline_ms <= e->now_ms)
            elastic_departures_expire(e, i);
        if (elastic_hosts_end_cooldowns(host, e->now_ms)) {
            e->grow_again = true;
            elastic_say(e, ELASTIC_NOTICE, "a cooldown on %s is over", elastic_host_name(e, i));
        }
    }
    e->call_again = true;
    elastic_hosts_find_due(&e->hosts, e->now_ms);
}
