/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for a handle. */
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "base/clock.h"
#include "loop/handle.h"
#include "loop/handles.h"

#define NS_PER_MS 1000000
#define NS_PER_SECOND 1000000000
#define LOOK_NS ((int64_t)20 * NS_PER_MS) /* for how long a thread looks, instead of sleeping */

static struct timespec after(int64_t timeout_ms)
{
    int64_t at = clock_mono_ns();
    at = timeout_ms > (INT64_MAX - at) / NS_PER_MS ? INT64_MAX : at + timeout_ms * NS_PER_MS;
    return (struct timespec){.tv_sec = at / NS_PER_SECOND, .tv_nsec = at % NS_PER_SECOND};
}

/* The memory of the results that fit is the caller's from now on. */
static void give_results(struct handle *handle, struct results results)
{
    size_t size = results.count == 0 ? 0 : results.items[0].size;
    for (size_t i = 0; i < handle->count && i < results.count; i++) {
        struct hvd_result *own = &handle->answers[i].result;
        own->size = size;
        memcpy((char *)results.items + i * size, own, size < sizeof *own ? size : sizeof *own);
        own->data = NULL;
        own->splits = NULL;
    }
}

/* With the lock held, which it gives up meanwhile. */
static int look_again(struct handles *handles, int64_t limit_ns)
{
    pthread_mutex_unlock(&handles->lock);
    sched_yield();
    pthread_mutex_lock(&handles->lock);
    return clock_mono_ns() >= limit_ns ? ETIMEDOUT : 0;
}

/* With the lock held. Sleeps, or looks as long as the handle may be complete at any moment. */
static void wait_with(struct handles *handles, struct handle *handle, int64_t timeout_ms)
{
    const struct timespec limit = after(timeout_ms < 0 ? 0 : timeout_ms);
    int64_t limit_ns =
        timeout_ms < 0 ? INT64_MAX : (int64_t)limit.tv_sec * NS_PER_SECOND + limit.tv_nsec;
    int64_t look_until_ns = 0;
    int rc = 0;
    while (handle->pending > 0 && rc == 0) {
        int64_t now_ns = handle->launched > 0 ? clock_mono_ns() : 0;
        if (handle->launched > 0 && look_until_ns == 0)
            look_until_ns = now_ns + LOOK_NS;
        if (handle->launched > 0 && now_ns < look_until_ns)
            rc = look_again(handles, limit_ns);
        else
            rc = timeout_ms < 0 ? pthread_cond_wait(handle->waiter, &handles->lock)
                                : pthread_cond_timedwait(handle->waiter, &handles->lock, &limit);
    }
}

/* With the lock held, which a wait gives up meanwhile. False: the time is over. */
static bool wait_for(struct handles *handles, struct handle *handle, int64_t timeout_ms)
{
    pthread_condattr_t attributes;
    pthread_cond_t waiter;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&waiter, &attributes);
    pthread_condattr_destroy(&attributes);
    handle->waiter = &waiter;
    wait_with(handles, handle, timeout_ms);
    handle->waiter = NULL;
    pthread_cond_destroy(&waiter);
    return handle->pending == 0;
}

/* With the lock held: the handle is complete, or NULL. */
static enum hvd_status take(struct handles *handles, struct handle *handle, struct results results,
                            int32_t *number_out, char *text, size_t room)
{
    enum hvd_status status = handle_status(handle, text, room);
    if (handle == NULL)
        return status;
    if (status == HVD_OK && results.items != NULL)
        give_results(handle, results);
    if (number_out != NULL)
        *number_out = handle->value;
    handle_release(handles, handle);
    return status;
}

enum hvd_status handle_take(struct handles *handles, hvd_handle number, struct results results,
                            char *text, size_t room)
{
    enum hvd_status status = HVD_IN_PROGRESS;
    pthread_mutex_lock(&handles->lock);
    struct handle *handle = handle_find(handles, number);
    if (handle == NULL || (handle->pending == 0 && handle->waiter == NULL))
        status = take(handles, handle, results, NULL, text, room);
    pthread_mutex_unlock(&handles->lock);
    return status;
}

enum hvd_status handle_wait(struct handles *handles, hvd_handle number, int64_t timeout_ms,
                            struct results results, int32_t *number_out, char *text, size_t room)
{
    pthread_mutex_lock(&handles->lock);
    struct handle *handle = handle_find(handles, number);
    enum hvd_status status;
    if (handle != NULL && handle->waiter != NULL) {
        status = HVD_ERR_BUSY;
        strncpy(text, "another thread waits for this handle", room - 1);
    } else if (handle != NULL && handle->pending > 0 && !wait_for(handles, handle, timeout_ms)) {
        status = HVD_ERR_TIMEOUT;
        strncpy(text, "the operation was not complete within the time limit", room - 1);
    } else {
        status = take(handles, handle, results, number_out, text, room);
    }
    pthread_mutex_unlock(&handles->lock);
    return status;
}
