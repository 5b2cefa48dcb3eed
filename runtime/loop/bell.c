/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/bell.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/mem.h"

struct bell {
    pthread_mutex_t lock;
    int holders;
    struct channel *channel; /* NULL: silent */
};

struct bell *bell_create(struct channel *channel)
{
    struct bell *bell = mem_alloc(sizeof *bell);
    pthread_mutex_init(&bell->lock, NULL);
    bell->holders = 1;
    bell->channel = channel;
    return bell;
}

struct bell *bell_hold(struct bell *bell)
{
    pthread_mutex_lock(&bell->lock);
    bell->holders++;
    pthread_mutex_unlock(&bell->lock);
    return bell;
}

/* With the lock held; releases it. */
static void give_up(struct bell *bell)
{
    bool last = --bell->holders == 0;
    pthread_mutex_unlock(&bell->lock);
    if (!last)
        return;
    pthread_mutex_destroy(&bell->lock);
    free(bell);
}

void bell_silence(struct bell *bell)
{
    pthread_mutex_lock(&bell->lock);
    bell->channel = NULL;
    give_up(bell);
}

void bell_ring(void *argument)
{
    struct bell *bell = argument;
    pthread_mutex_lock(&bell->lock);
    if (bell->channel != NULL)
        channel_ring(bell->channel);
    give_up(bell);
}
