/* SPDX-License-Identifier: Apache-2.0 */
#include "pmix/module/batch.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/mem.h"
#include "pmix/module/server.h"

#define WAIT_SECONDS 5

struct batch {
    pthread_mutex_t lock;
    pthread_cond_t done;
    int waiting;          /* for that many calls of batch_done() */
    bool abandoned;       /* the wait was given up: the last call frees it */
    pmix_status_t status; /* the first that went wrong */
};

struct batch *batch_create(int count)
{
    struct batch *batch = mem_alloc(sizeof(*batch));
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    batch->waiting = count;
    batch->status = PMIX_SUCCESS;
    pthread_mutex_init(&batch->lock, NULL);
    pthread_cond_init(&batch->done, &attributes);
    pthread_condattr_destroy(&attributes);
    return batch;
}

static void batch_destroy(struct batch *batch)
{
    pthread_mutex_destroy(&batch->lock);
    pthread_cond_destroy(&batch->done);
    free(batch);
}

void batch_done(pmix_status_t status, void *context)
{
    struct batch *batch = context;
    pthread_mutex_lock(&batch->lock);
    if (!server_ok(status) && server_ok(batch->status))
        batch->status = status;
    batch->waiting--;
    bool last = batch->waiting == 0;
    bool alone = last && batch->abandoned;
    if (last && !alone)
        pthread_cond_signal(&batch->done);
    pthread_mutex_unlock(&batch->lock);
    if (alone)
        batch_destroy(batch);
}

pmix_status_t batch_wait(struct batch *batch)
{
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += WAIT_SECONDS;
    int late = 0;
    pthread_mutex_lock(&batch->lock);
    while (batch->waiting > 0 && late != ETIMEDOUT)
        late = pthread_cond_timedwait(&batch->done, &batch->lock, &end);
    batch->abandoned = batch->waiting > 0;
    bool abandoned = batch->abandoned;
    pmix_status_t status = abandoned ? PMIX_ERR_TIMEOUT : batch->status;
    pthread_mutex_unlock(&batch->lock);
    if (!abandoned)
        batch_destroy(batch);
    return status;
}
