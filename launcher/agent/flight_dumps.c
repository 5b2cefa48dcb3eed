/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/flight_dumps.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "node/flight_dump.h"

#define LATE_MS 500 /* the thread notices the deadline before we give it up */

/* Shared with the thread; the last one frees it. */
struct dump_work {
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* it is abandoned */
    struct flight_item *items;
    size_t count, room;
    int holders;
    bool abandoned;
    int64_t deadline_ms;
};

struct flight_dumps {
    struct dump_work *work;
    bool *told;
};

/* With the mutex locked, which it unlocks. */
static void leave(struct dump_work *work)
{
    bool last = --work->holders == 0;
    pthread_mutex_unlock(&work->mutex);
    if (!last)
        return;
    for (size_t i = 0; i < work->count; i++) {
        flight_places_clear(&work->items[i].places);
        free(work->items[i].bytes);
    }
    pthread_cond_destroy(&work->changed);
    pthread_mutex_destroy(&work->mutex);
    free(work->items);
    free(work);
}

static void end_item(struct dump_work *work, struct flight_item *item, const char *missing)
{
    pthread_mutex_lock(&work->mutex);
    item->missing = missing;
    item->ended = true;
    pthread_mutex_unlock(&work->mutex);
}

static void take_bytes(struct dump_work *work, struct flight_item *item, const struct buf *text)
{
    if (text->length > work->room) {
        end_item(work, item, "the dumps of this host are too large in total");
        return;
    }
    work->room -= text->length;
    item->bytes = mem_alloc(text->length);
    memcpy(item->bytes, buf_text(text), text->length);
    item->length = text->length;
    end_item(work, item, NULL);
}

static void look_at(struct dump_work *work, struct flight_item *item, struct flight_dump *dump)
{
    struct buf text AUTO_BUF = BUF_INIT(FLIGHT_FILE_MAX);
    enum flight_state state = flight_dump_look(dump, item->places.dump, &text);
    if (state == FLIGHT_TAKEN)
        take_bytes(work, item, &text);
    else if (state == FLIGHT_TOO_LARGE)
        end_item(work, item, "it has more than 4 MiB");
}

/* Until it is time to look again. false: it is too late for that. */
static bool wait_a_while(struct dump_work *work)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += FLIGHT_PAUSE_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&work->mutex);
    if (!work->abandoned)
        pthread_cond_timedwait(&work->changed, &work->mutex, &until);
    bool goes_on = !work->abandoned && clock_mono_ms() <= work->deadline_ms;
    pthread_mutex_unlock(&work->mutex);
    return goes_on;
}

/* Only this thread writes to items that have not ended, so it reads them without the mutex. */
static void *collect(void *context)
{
    struct dump_work *work = context;
    struct flight_dump *dumps AUTO_FREE = mem_array(work->count + 1, sizeof(*dumps));
    size_t open = 0;
    for (size_t i = 0; i < work->count; i++) {
        struct flight_item *item = &work->items[i];
        if (flight_dump_ask(&dumps[i], item->places.pipe, item->places.dump) < 0)
            end_item(work, item, NULL);
        else
            open++;
    }
    while (open > 0 && wait_a_while(work)) {
        open = 0;
        for (size_t i = 0; i < work->count; i++) {
            if (!work->items[i].ended)
                look_at(work, &work->items[i], &dumps[i]);
            open += !work->items[i].ended;
        }
    }
    for (size_t i = 0; i < work->count; i++) {
        if (!work->items[i].ended)
            end_item(work, &work->items[i], "it did not come in time");
    }
    pthread_mutex_lock(&work->mutex);
    leave(work);
    return NULL;
}

/* Signals are for the main thread. */
static bool start_thread(struct dump_work *work)
{
    sigset_t all, before;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(&thread, NULL, collect, work) == 0;
    if (started)
        pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

struct flight_dumps *flight_dumps_create(struct flight_item *items_take, size_t count, size_t room)
{
    struct flight_dumps *dumps = mem_alloc(sizeof(*dumps));
    struct dump_work *work = mem_alloc(sizeof(*work));
    *work = (struct dump_work){.items = items_take,
                               .count = count,
                               .room = room,
                               .holders = 2,
                               .deadline_ms = clock_mono_ms() + FLIGHT_WAIT_MS};
    pthread_mutex_init(&work->mutex, NULL);
    pthread_cond_init(&work->changed, NULL);
    *dumps = (struct flight_dumps){.work = work, .told = mem_array(count + 1, sizeof(bool))};
    if (!start_thread(work)) {
        work->holders--;
        work->deadline_ms = 0; /* all is missing */
    }
    return dumps;
}

bool flight_dumps_advance(struct flight_dumps *dumps,
                          void (*each)(void *context, const struct flight_item *item),
                          void *context)
{
    struct dump_work *work = dumps->work;
    size_t open = 0;
    pthread_mutex_lock(&work->mutex);
    bool late = clock_mono_ms() > work->deadline_ms + LATE_MS;
    for (size_t i = 0; i < work->count; i++) {
        struct flight_item none = {.seat = work->items[i].seat,
                                   .missing = "its folder does not answer"};
        bool ended = work->items[i].ended;
        if (!dumps->told[i] && (ended || late)) {
            each(context, ended ? &work->items[i] : &none);
            dumps->told[i] = true;
        }
        open += !dumps->told[i];
    }
    pthread_mutex_unlock(&work->mutex);
    return open == 0;
}

void flight_dumps_destroy(struct flight_dumps *dumps)
{
    if (dumps == NULL)
        return;
    pthread_mutex_lock(&dumps->work->mutex);
    dumps->work->abandoned = true;
    pthread_cond_signal(&dumps->work->changed);
    leave(dumps->work);
    free(dumps->told);
    free(dumps);
}
