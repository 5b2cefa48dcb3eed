/* SPDX-License-Identifier: Apache-2.0 */
#include "model/elastic/job.h"

#include <assert.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "model/elastic/hosts.h"

/* Seats and workers. */

#define TO(state) (1u << (state))

/* Where a worker may go from each state; the table of model/elastic/types.h. To FREE it may
 * always. */
static const unsigned allowed[ELASTIC_WORKER_STATES] = {
    [ELASTIC_WORKER_FREE] = TO(ELASTIC_WORKER_PLANNED),
    [ELASTIC_WORKER_PLANNED] = TO(ELASTIC_WORKER_STARTING) | TO(ELASTIC_WORKER_JOINING),
    [ELASTIC_WORKER_STARTING] =
        TO(ELASTIC_WORKER_RUNNING) | TO(ELASTIC_WORKER_KILLED) | TO(ELASTIC_WORKER_EXITED),
    [ELASTIC_WORKER_RUNNING] = TO(ELASTIC_WORKER_ASKED) | TO(ELASTIC_WORKER_HELD) |
                               TO(ELASTIC_WORKER_KILLED) | TO(ELASTIC_WORKER_EXITED),
    [ELASTIC_WORKER_HELD] =
        TO(ELASTIC_WORKER_RUNNING) | TO(ELASTIC_WORKER_KILLED) | TO(ELASTIC_WORKER_EXITED),
    [ELASTIC_WORKER_ASKED] = TO(ELASTIC_WORKER_RUNNING) | TO(ELASTIC_WORKER_REMOVED) |
                             TO(ELASTIC_WORKER_KILLED) | TO(ELASTIC_WORKER_EXITED),
    [ELASTIC_WORKER_REMOVED] = TO(ELASTIC_WORKER_KILLED) | TO(ELASTIC_WORKER_EXITED),
    [ELASTIC_WORKER_KILLED] = TO(ELASTIC_WORKER_EXITED),
    [ELASTIC_WORKER_EXITED] = 0,
    [ELASTIC_WORKER_JOINING] = TO(ELASTIC_WORKER_READY) | TO(ELASTIC_WORKER_DISMISSED) |
                               TO(ELASTIC_WORKER_KILLED) | TO(ELASTIC_WORKER_EXITED),
    [ELASTIC_WORKER_READY] = TO(ELASTIC_WORKER_RUNNING) | TO(ELASTIC_WORKER_DISMISSED) |
                             TO(ELASTIC_WORKER_KILLED) | TO(ELASTIC_WORKER_EXITED),
    [ELASTIC_WORKER_DISMISSED] = TO(ELASTIC_WORKER_KILLED) | TO(ELASTIC_WORKER_EXITED),
};

void elastic_workers_destroy(struct elastic_workers *workers)
{
    for (int i = 0; i < workers->count; i++)
        free(workers->items[i].requests);
    free(workers->items);
}

struct elastic_worker *elastic_workers_at(const struct elastic_workers *workers, int seat)
{
    if (seat < 0 || seat >= workers->count || workers->items[seat].state == ELASTIC_WORKER_FREE)
        return NULL;
    return &workers->items[seat];
}

bool elastic_worker_stays(const struct elastic_worker *worker)
{
    return worker->state == ELASTIC_WORKER_STARTING || worker->state == ELASTIC_WORKER_RUNNING ||
           worker->state == ELASTIC_WORKER_ASKED || worker->state == ELASTIC_WORKER_HELD;
}

bool elastic_worker_lives(const struct elastic_worker *worker)
{
    return worker->state != ELASTIC_WORKER_FREE && worker->state != ELASTIC_WORKER_EXITED;
}

bool elastic_worker_is_newcomer(const struct elastic_worker *worker)
{
    return worker->state == ELASTIC_WORKER_JOINING || worker->state == ELASTIC_WORKER_READY ||
           worker->state == ELASTIC_WORKER_DISMISSED;
}

/* Counts the worker in its present state, or takes it out of the counts. */
static void tally(struct elastic_workers *workers, const struct elastic_worker *worker, int step)
{
    struct elastic_host *host = &workers->hosts->items[worker->host];
    workers->in_state[worker->state] += step;
    if (worker->state == ELASTIC_WORKER_FREE)
        return;
    workers->taken += step;
    host->seats += step;
    if (elastic_worker_lives(worker))
        host->live += step;
    if (elastic_worker_stays(worker))
        host->staying += step;
    if (elastic_worker_is_newcomer(worker))
        host->newcomers += step;
}

static void set_state(struct elastic_workers *workers, struct elastic_worker *worker,
                      enum elastic_worker_state to)
{
    tally(workers, worker, -1);
    worker->state = to;
    tally(workers, worker, +1);
}

static int find_free(struct elastic_workers *workers)
{
    int seat = workers->free_below;
    while (seat < workers->count && workers->items[seat].state != ELASTIC_WORKER_FREE)
        seat++;
    workers->free_below = seat;
    if (seat < workers->count)
        return seat;
    MEM_ADD_ROOM(workers->items, workers->count, workers->room) =
        (struct elastic_worker){.state = ELASTIC_WORKER_FREE};
    workers->in_state[ELASTIC_WORKER_FREE]++;
    return seat;
}

int elastic_workers_seat(struct elastic_workers *workers, int host, int slot)
{
    int seat = find_free(workers);
    struct elastic_worker *worker = &workers->items[seat];
    struct elastic_host *home = &workers->hosts->items[host];
    *worker = (struct elastic_worker){
        .host = host,
        .slot = slot,
        .rank = -1,
        .local_rank = -1,
        .due_ms = INT64_MAX,
        .next = home->first_seat,
        .previous = -1,
    };
    if (home->first_seat >= 0)
        workers->items[home->first_seat].previous = seat;
    home->first_seat = seat;
    elastic_workers_move(workers, seat, ELASTIC_WORKER_PLANNED);
    return seat;
}

static void forget_requests(struct elastic_worker *worker)
{
    free(worker->requests);
    worker->requests = NULL;
    worker->request_count = worker->request_room = 0;
}

void elastic_workers_move(struct elastic_workers *workers, int seat, enum elastic_worker_state to)
{
    struct elastic_worker *worker = &workers->items[seat];
    bool fits = (allowed[worker->state] & TO(to)) != 0;
    assert(fits);
    if (!fits)
        return;
    set_state(workers, worker, to);
    worker->due_ms = INT64_MAX;
    if (to != ELASTIC_WORKER_ASKED)
        forget_requests(worker);
}

void elastic_workers_free(struct elastic_workers *workers, int seat)
{
    struct elastic_worker *worker = &workers->items[seat];
    struct elastic_host *home = &workers->hosts->items[worker->host];
    set_state(workers, worker, ELASTIC_WORKER_FREE);
    forget_requests(worker);
    if (worker->previous >= 0)
        workers->items[worker->previous].next = worker->next;
    else
        home->first_seat = worker->next;
    if (worker->next >= 0)
        workers->items[worker->next].previous = worker->previous;
    if (seat < workers->free_below)
        workers->free_below = seat;
}

void elastic_workers_forget_planned(struct elastic_workers *workers)
{
    if (workers->in_state[ELASTIC_WORKER_PLANNED] == 0)
        return;
    for (int seat = 0; seat < workers->count; seat++) {
        const struct elastic_worker *worker = &workers->items[seat];
        if (worker->state == ELASTIC_WORKER_PLANNED && worker->placed)
            elastic_workers_free(workers, seat);
    }
}

void elastic_workers_expect(struct elastic_workers *workers, int seat, int64_t due_ms)
{
    workers->items[seat].due_ms = due_ms;
    if (due_ms < workers->due_ms)
        workers->due_ms = due_ms;
}

void elastic_workers_find_due(struct elastic_workers *workers)
{
    workers->due_ms = INT64_MAX;
    for (int i = 0; i < workers->count; i++) {
        const struct elastic_worker *worker = &workers->items[i];
        if (elastic_worker_lives(worker) && worker->due_ms < workers->due_ms)
            workers->due_ms = worker->due_ms;
    }
}

int elastic_workers_find(const struct elastic_workers *workers, int host, int local_rank)
{
    const struct elastic_host *home = elastic_hosts_at(workers->hosts, host);
    if (home == NULL || local_rank < 0)
        return -1;
    int ending = -1;
    for (int seat = home->first_seat; seat >= 0; seat = workers->items[seat].next) {
        const struct elastic_worker *worker = &workers->items[seat];
        if (worker->local_rank != local_rank)
            continue;
        if (elastic_worker_stays(worker))
            return seat;
        if (worker->state == ELASTIC_WORKER_KILLED)
            ending = seat;
    }
    return ending;
}

void elastic_workers_hold(struct elastic_workers *workers, int seat, uint64_t request)
{
    struct elastic_worker *worker = &workers->items[seat];
    for (int i = 0; i < worker->request_count; i++)
        if (worker->requests[i] == request)
            return;
    if (worker->request_count == worker->request_room) { /* mostly, each rank has just one */
        worker->request_room = worker->request_room > 0 ? 2 * worker->request_room : 1;
        worker->requests = mem_resize_array(worker->requests, (size_t)worker->request_room,
                                            sizeof(*worker->requests));
    }
    worker->requests[worker->request_count++] = request;
}

int elastic_workers_drop(struct elastic_workers *workers, uint64_t request)
{
    for (int seat = 0; seat < workers->count; seat++) {
        struct elastic_worker *worker = &workers->items[seat];
        for (int i = 0; i < worker->request_count; i++)
            if (worker->requests[i] == request) {
                worker->requests[i] = worker->requests[--worker->request_count];
                return seat;
            }
    }
    return -1;
}

/* What all files of the core use. */

#define TEXT_MAX 2048

struct elastic_action *elastic_emit(struct elastic *e, enum elastic_action_kind kind)
{
    struct elastic_actions *out = e->out;
    struct elastic_action *action = &MEM_ADD_ROOM(out->items, out->count, out->room);
    *action = (struct elastic_action){.kind = kind, .host = -1, .seat = -1, .deadline_ms = -1};
    return action;
}

void elastic_remove(struct elastic *e, int seat, enum elastic_worker_state state)
{
    elastic_emit(e, ELASTIC_KILL)->seat = seat;
    elastic_workers_move(&e->workers, seat, state);
    elastic_workers_expect(&e->workers, seat, e->now_ms + e->config.patience_ms);
}

const char *elastic_host_name(const struct elastic *e, int number)
{
    return e->hosts.names.items[number].name;
}

static struct elastic_action *emit_text(struct elastic *e, enum elastic_action_kind kind,
                                        const char *format, va_list args)
{
    struct buf text AUTO_BUF = BUF_INIT(TEXT_MAX);
    if (buf_vprintf(&text, format, args) < 0)
        buf_puts(&text, "(a line too long to show)");
    MEM_ADD_ROOM(e->texts, e->text_count, e->text_room) = mem_strdup(buf_text(&text));
    struct elastic_action *action = elastic_emit(e, kind);
    action->text = e->texts[e->text_count - 1];
    return action;
}

void elastic_say(struct elastic *e, int level, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    emit_text(e, ELASTIC_SAY, format, args)->level = level;
    va_end(args);
}

void elastic_host_bad(struct elastic *e, int host, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    emit_text(e, ELASTIC_HOST_BAD, format, args)->host = host;
    va_end(args);
}

int elastic_slots_without(const struct elastic *e, int number)
{
    int slots = 0;
    for (int i = 0; i < e->hosts.count; i++)
        slots += i != number ? elastic_hosts_promised(&e->hosts.items[i]) : 0;
    return slots;
}

void elastic_blacklist(struct elastic *e, int number, int slot, const char *why)
{
    const struct elastic_host *host = &e->hosts.items[number];
    elastic_hosts_blacklist(&e->hosts, number, slot, &e->config, e->now_ms);
    int64_t until = slot < 0 ? host->record.blacklisted_until_ms
                             : host->slot_records[slot].blacklisted_until_ms;
    char what[32] = "", long_as[32] = "the rest of the job";
    if (slot >= 0)
        snprintf(what, sizeof(what), "slot %d of ", slot);
    if (until != ELASTIC_FOR_GOOD)
        snprintf(long_as, sizeof(long_as), "%lld s", (long long)((until - e->now_ms + 999) / 1000));
    elastic_say(e, ELASTIC_WARNING, "%s%s is blacklisted for %s: %s", what,
                elastic_host_name(e, number), long_as, why);
    e->call_again = true;
}

void elastic_blacklist_slot(struct elastic *e, int number, int slot)
{
    char why[64];
    snprintf(why, sizeof(why), "the program crashed there %d time%s", e->config.failure_limit,
             elastic_plural(e->config.failure_limit));
    elastic_blacklist(e, number, slot, why);
}

void elastic_forget_texts(struct elastic *e)
{
    for (size_t i = 0; i < e->text_count; i++)
        free(e->texts[i]);
    e->text_count = 0;
}

struct elastic_failure elastic_failure_of(const struct elastic *e, enum elastic_failure_kind kind,
                                          int host, int seat, int64_t since_ms)
{
    const struct elastic_worker *worker = elastic_workers_at(&e->workers, seat);
    return (struct elastic_failure){.kind = kind,
                                    .host = worker != NULL ? worker->host : host,
                                    .slot = worker != NULL ? worker->slot : -1,
                                    .seat = worker != NULL ? seat : -1,
                                    .rank = worker != NULL ? worker->rank : -1,
                                    .since_ms = since_ms};
}

const char *elastic_plural(int count)
{
    return count == 1 ? "" : "s";
}
