/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/held_readers.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"

struct reader {
    pid_t pid; /* 0: the place is free */
    int64_t late_ns;
};

struct held_readers {
    pthread_mutex_t mutex;
    int holders;
    struct reader places[HELD_READERS_MAX];
};

struct held_readers *held_readers_create(void)
{
    struct held_readers *readers = mem_alloc(sizeof(*readers));
    *readers = (struct held_readers){.holders = 1};
    pthread_mutex_init(&readers->mutex, NULL);
    return readers;
}

struct held_readers *held_readers_share(struct held_readers *readers)
{
    pthread_mutex_lock(&readers->mutex);
    readers->holders++;
    pthread_mutex_unlock(&readers->mutex);
    return readers;
}

void held_readers_leave(struct held_readers *readers)
{
    if (readers == NULL)
        return;
    pthread_mutex_lock(&readers->mutex);
    bool last = --readers->holders == 0;
    pthread_mutex_unlock(&readers->mutex);
    if (!last)
        return;
    pthread_mutex_destroy(&readers->mutex);
    free(readers);
}

/* With the mutex locked. */
static int find_place(const struct held_readers *readers, pid_t pid, int64_t now_ns)
{
    int place = -1;
    for (int i = HELD_READERS_MAX - 1; i >= 0; i--) {
        const struct reader *reader = &readers->places[i];
        if (reader->pid == pid && now_ns > reader->late_ns)
            return -1;
        place = reader->pid == 0 ? i : place;
    }
    return place;
}

int held_readers_begin(struct held_readers *readers, pid_t pid, int64_t late_ns)
{
    pthread_mutex_lock(&readers->mutex);
    int place = find_place(readers, pid, clock_mono_ns());
    if (place >= 0)
        readers->places[place] = (struct reader){pid, late_ns};
    pthread_mutex_unlock(&readers->mutex);
    return place;
}

void held_readers_done(struct held_readers *readers, int place)
{
    pthread_mutex_lock(&readers->mutex);
    readers->places[place].pid = 0;
    pthread_mutex_unlock(&readers->mutex);
}
