/* SPDX-License-Identifier: Apache-2.0 */
#include "model/elastic/parts.h"

#include <stdio.h>

#include "base/mem.h"

static void tell_deadline(struct elastic *e, int number)
{
    struct elastic_action *action = elastic_emit(e, ELASTIC_DEADLINE);
    action->host = number;
    action->deadline_ms = e->hosts.items[number].drain_deadline_ms;
    action->text = e->hosts.items[number].drain_reason;
}

/* Its upper slots drain. */
static void shrink(struct elastic *e, int number, const char *text)
{
    const struct elastic_host *host = &e->hosts.items[number];
    elastic_members_avoid(e, number);
    if (host->live == host->newcomers)
        return; /* newcomers are dismissed without a change */
    elastic_change_note(e, "%s", text);
    e->facts.preemptions++;
    if (host->drain_deadline_ms >= 0)
        tell_deadline(e, number);
    elastic_say(e, ELASTIC_NOTICE, "%s", text);
    if (e->state == ELASTIC_RUNNING && host->staying > 0) {
        int64_t grace = e->config.orderly_grace_ms;
        int64_t left = host->drain_deadline_ms - e->now_ms;
        if (host->drain_deadline_ms >= 0 && left < grace)
            grace = left > 0 ? left : 0;
        elastic_change_leave(e, grace);
    }
}

/* A host that is up begins to drain: DRAINING. `text` names it and says why. */
static void begin(struct elastic *e, int number, const char *text)
{
    elastic_hosts_move(&e->hosts, number, ELASTIC_HOST_DRAINING);
    e->release_again = e->call_again = true;
    shrink(e, number, text);
}

void elastic_departures_finish(struct elastic *e)
{
    for (int i = 0; i < e->hosts.count; i++) {
        struct elastic_host *host = &e->hosts.items[i];
        if (host->state != ELASTIC_HOST_DRAINING || host->seats > 0)
            continue;
        elastic_emit(e, ELASTIC_LET_GO)->host = i;
        elastic_hosts_move(&e->hosts, i, ELASTIC_HOST_DRAINED);
        elastic_say(e, ELASTIC_NOTICE, "%s has left the job", elastic_host_name(e, i));
        if (host->listed && !host->relisted)
            continue;
        elastic_hosts_move(&e->hosts, i, host->listed ? ELASTIC_HOST_KNOWN : ELASTIC_HOST_ABSENT);
        elastic_hosts_undrain(host);
        e->call_again = true;
    }
}

void elastic_departures_drain(struct elastic *e, int number, const char *text, int64_t deadline_ms)
{
    struct elastic_host *host = &e->hosts.items[number];
    if (host->state == ELASTIC_HOST_ABSENT)
        return;
    int64_t told_ms = host->drain_deadline_ms;
    elastic_hosts_drain(&e->hosts, number, text, deadline_ms);
    e->call_again = true;
    char why[400];
    snprintf(why, sizeof(why), "draining %.200s%s%.170s", elastic_host_name(e, number),
             text != NULL && text[0] != '\0' ? ": " : "", text != NULL ? text : "");
    switch (host->state) {
    case ELASTIC_HOST_CALLING: elastic_emit(e, ELASTIC_LET_GO)->host = number; /* fall through */
    case ELASTIC_HOST_KNOWN:
    case ELASTIC_HOST_AWAY: elastic_hosts_move(&e->hosts, number, ELASTIC_HOST_DRAINED); break;
    case ELASTIC_HOST_UP: begin(e, number, why); break;
    case ELASTIC_HOST_DRAINING:
        if (host->drain_deadline_ms != told_ms && host->live > 0)
            tell_deadline(e, number);
        break;
    default: break;
    }
}

void elastic_departures_undrain(struct elastic *e, int number)
{
    struct elastic_host *host = &e->hosts.items[number];
    if (!host->drained)
        return;
    bool told = host->drain_deadline_ms >= 0 && host->live > 0;
    elastic_hosts_undrain(host);
    if (told && host->state == ELASTIC_HOST_DRAINING)
        tell_deadline(e, number); /* that there is none any more */
    e->call_again = e->grow_again = true;
    if (host->state == ELASTIC_HOST_DRAINED)
        elastic_hosts_move(&e->hosts, number, ELASTIC_HOST_KNOWN);
    else if (host->state == ELASTIC_HOST_DRAINING && host->listed)
        elastic_hosts_move(&e->hosts, number, ELASTIC_HOST_UP);
}

void elastic_departures_expire(struct elastic *e, int number)
{
    struct elastic_host *host = &e->hosts.items[number];
    host->expired = true;
    if (host->live == 0 || e->state == ELASTIC_STOPPING)
        return;
    bool had_members = host->staying > 0;
    struct elastic_failure failure =
        elastic_failure_of(e, ELASTIC_FAILURE_PREEMPTED, number, -1, e->now_ms);
    snprintf(failure.text, sizeof(failure.text), "the deadline for draining %.200s has passed",
             elastic_host_name(e, number));
    for (int seat = host->first_seat; seat >= 0; seat = e->workers.items[seat].next) {
        const struct elastic_worker *worker = &e->workers.items[seat];
        if (!elastic_worker_lives(worker) || worker->state == ELASTIC_WORKER_KILLED ||
            elastic_worker_is_newcomer(worker))
            continue; /* newcomers were dismissed when the host began to drain */
        elastic_change_kill(e, seat);
    }
    if (e->state == ELASTIC_WAITING)
        e->state = ELASTIC_AGREEING; /* until they have ended */
    if (had_members)
        elastic_change_fail(e, &failure);
}

/* On the list no more. */
static void unlist(struct elastic *e, int number)
{
    struct elastic_host *host = &e->hosts.items[number];
    host->listed = false;
    e->call_again = true;
    char text[300];
    switch (host->state) {
    case ELASTIC_HOST_CALLING: elastic_emit(e, ELASTIC_LET_GO)->host = number; /* fall through */
    case ELASTIC_HOST_KNOWN:
    case ELASTIC_HOST_AWAY:
    case ELASTIC_HOST_DRAINED:
        elastic_hosts_move(&e->hosts, number, ELASTIC_HOST_ABSENT);
        elastic_hosts_undrain(host);
        break;
    case ELASTIC_HOST_UP:
        snprintf(text, sizeof(text), "%.200s is not listed any more", elastic_host_name(e, number));
        begin(e, number, text);
        break;
    default: break; /* it drains already */
    }
}

static bool has_worker_above(const struct elastic *e, int number)
{
    const struct elastic_host *host = &e->hosts.items[number];
    for (int seat = host->first_seat; seat >= 0; seat = e->workers.items[seat].next) {
        const struct elastic_worker *worker = &e->workers.items[seat];
        if ((elastic_worker_stays(worker) || worker->state == ELASTIC_WORKER_PLANNED) &&
            worker->slot >= host->slots)
            return true;
    }
    return false;
}

static void resize(struct elastic *e, int number, int slots)
{
    struct elastic_host *host = &e->hosts.items[number];
    if (slots == host->slots)
        return;
    elastic_hosts_set_slots(host, slots);
    e->call_again = e->grow_again = true;
    if (host->state != ELASTIC_HOST_UP || !has_worker_above(e, number))
        return;
    char text[300];
    snprintf(text, sizeof(text), "%.200s has only %d slot%s now", elastic_host_name(e, number),
             slots, elastic_plural(slots));
    shrink(e, number, text);
}

static void enter(struct elastic *e, const struct host *entry)
{
    int number = elastic_hosts_enter(&e->hosts, entry);
    struct elastic_host *host = &e->hosts.items[number];
    host->seen = e->listing;
    if (!host->listed) {
        host->listed = host->unseen = true;
        e->call_again = e->grow_again = true;
        if (host->state == ELASTIC_HOST_ABSENT)
            elastic_hosts_move(&e->hosts, number, ELASTIC_HOST_KNOWN);
        else if (host->state == ELASTIC_HOST_DRAINING && !host->drained)
            elastic_hosts_move(&e->hosts, number, ELASTIC_HOST_UP);
        else if (host->state == ELASTIC_HOST_DRAINING)
            host->relisted = true; /* the next machine of this name, once this one has left */
    }
    resize(e, number, entry->slots);
}

void elastic_listing_take(struct elastic *e, const struct host_list *list)
{
    e->listing++;
    mem_free_at(&e->discovery_problem);
    for (size_t i = 0; i < list->count && e->state != ELASTIC_ENDING; i++)
        enter(e, &list->items[i]);
    for (int i = 0; i < e->hosts.count && e->state != ELASTIC_ENDING; i++)
        if (e->hosts.items[i].listed && e->hosts.items[i].seen != e->listing)
            unlist(e, i);
}
