/* SPDX-License-Identifier: Apache-2.0 */
#include "streams.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/mem.h"
#include "fake.h"

struct task {
    struct task *next;
    void (*function)(void *argument);
    void *argument;
};

struct stream {
    pthread_mutex_t lock;
    pthread_cond_t added;
    struct task *first, **end;
    bool ending;
};

struct event {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int holders;
    uint64_t recorded, done;
};

/* A point of an event in a stream. */
struct point {
    struct event *event;
    uint64_t number;
};

static void *run(void *argument)
{
    struct stream *stream = argument;
    pthread_mutex_lock(&stream->lock);
    for (;;) {
        struct task *task = stream->first;
        if (task == NULL && stream->ending)
            break;
        if (task == NULL) {
            pthread_cond_wait(&stream->added, &stream->lock);
            continue;
        }
        stream->first = task->next;
        if (stream->first == NULL)
            stream->end = &stream->first;
        pthread_mutex_unlock(&stream->lock);
        task->function(task->argument);
        free(task);
        pthread_mutex_lock(&stream->lock);
    }
    pthread_mutex_unlock(&stream->lock);
    pthread_mutex_destroy(&stream->lock);
    pthread_cond_destroy(&stream->added);
    free(stream);
    return NULL;
}

struct stream *stream_new(void)
{
    struct stream *stream = mem_alloc(sizeof *stream);
    pthread_t thread;
    pthread_mutex_init(&stream->lock, NULL);
    pthread_cond_init(&stream->added, NULL);
    stream->end = &stream->first;
    if (pthread_create(&thread, NULL, run, stream) != 0)
        mem_exhausted();
    pthread_setname_np(thread, "fake-stream");
    pthread_detach(thread);
    return stream;
}

void stream_end(struct stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    stream->ending = true;
    pthread_cond_signal(&stream->added);
    pthread_mutex_unlock(&stream->lock);
}

void fake_stream_add(void *to, void (*function)(void *argument), void *argument)
{
    struct stream *stream = to;
    struct task *task = mem_alloc(sizeof *task);
    *task = (struct task){NULL, function, argument};
    pthread_mutex_lock(&stream->lock);
    *stream->end = task;
    stream->end = &task->next;
    pthread_cond_signal(&stream->added);
    pthread_mutex_unlock(&stream->lock);
}

/* ---- Events ---------------------------------------------------------------------------------- */

struct event *event_new(void)
{
    struct event *event = mem_alloc(sizeof *event);
    pthread_mutex_init(&event->lock, NULL);
    pthread_cond_init(&event->changed, NULL);
    event->holders = 1;
    return event;
}

void event_free(struct event *event)
{
    pthread_mutex_lock(&event->lock);
    bool last = --event->holders == 0;
    pthread_mutex_unlock(&event->lock);
    if (!last)
        return;
    pthread_mutex_destroy(&event->lock);
    pthread_cond_destroy(&event->changed);
    free(event);
}

static struct point *point_new(struct event *event, bool record)
{
    struct point *point = mem_alloc(sizeof *point);
    pthread_mutex_lock(&event->lock);
    event->holders++;
    event->recorded += record ? 1 : 0;
    *point = (struct point){event, event->recorded};
    pthread_mutex_unlock(&event->lock);
    return point;
}

static void reach(void *argument)
{
    struct point *point = argument;
    struct event *event = point->event;
    pthread_mutex_lock(&event->lock);
    if (point->number > event->done)
        event->done = point->number;
    pthread_cond_broadcast(&event->changed);
    pthread_mutex_unlock(&event->lock);
    event_free(event);
    free(point);
}

static void await(void *argument)
{
    struct point *point = argument;
    struct event *event = point->event;
    pthread_mutex_lock(&event->lock);
    while (event->done < point->number)
        pthread_cond_wait(&event->changed, &event->lock);
    pthread_mutex_unlock(&event->lock);
    event_free(event);
    free(point);
}

void event_record(struct event *event, struct stream *stream)
{
    fake_stream_add(stream, reach, point_new(event, true));
}

void event_wait(struct event *event, struct stream *stream)
{
    fake_stream_add(stream, await, point_new(event, false));
}

bool event_done(struct event *event)
{
    pthread_mutex_lock(&event->lock);
    bool done = event->done >= event->recorded;
    pthread_mutex_unlock(&event->lock);
    return done;
}

void stream_sync(struct stream *stream)
{
    struct event *event = event_new();
    event_record(event, stream);
    pthread_mutex_lock(&event->lock);
    while (event->done < event->recorded)
        pthread_cond_wait(&event->changed, &event->lock);
    pthread_mutex_unlock(&event->lock);
    event_free(event);
}
