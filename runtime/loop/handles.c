/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/handles.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"

enum { LOOKS = 100 }; /* before it lets other threads run */
#define NS_PER_MS 1000000
#define NS_PER_SECOND 1000000000
#define LOOK_NS ((int64_t)20 * NS_PER_MS) /* for how long a thread looks, instead of sleeping */

/* What has come back from a submission. */
struct answer {
    bool done;
    struct hvd_result result;
};

struct handle {
    hvd_handle number;
    struct submission *submissions;  /* behind the handle, in the same memory */
    struct answer *answers;          /* behind them */
    size_t count, pending, launched; /* `launched`: on a GPU, and pending */
    enum hvd_status status;
    size_t failed; /* the submission that `status` is of */
    char *text;
    int32_t value; /* outcome.number */
    hvd_callback callback;
    void *context;
    bool kept;
    pthread_cond_t *waiter; /* of the thread that waits; NULL: none */
    atomic_bool done;       /* nothing is pending, for a thread that looks without the lock */
};

/* A callback that has to run. */
struct callback {
    hvd_callback function;
    void *context;
    hvd_handle number;
    enum hvd_status status;
    bool release;
    struct callback *next;
};

struct handles {
    pthread_mutex_t lock;
    struct handle **slots;
    size_t used, room;
    size_t *free_slots, free_count, free_room;
    uint32_t generation;
    uint64_t completed;
    atomic_int waits; /* threads that wait for a handle */
    pthread_t thread;
    pthread_cond_t called;
    struct callback *first, **end;
    bool ending;
};

/* Of hvd.h; here, because a handle owns results until somebody takes them. */
void hvd_result_free(struct hvd_result *result)
{
    if (result == NULL)
        return;
    if (!cuda_free_if_device(result->data))
        free(result->data);
    free(result->splits);
    result->data = NULL;
    result->splits = NULL;
}

static void handle_destroy(struct handle *handle)
{
    for (size_t i = 0; i < handle->count; i++) {
        free(handle->submissions[i].splits);
        hvd_result_free(&handle->answers[i].result);
        gpu_mark_release(handle->submissions[i].ready);
    }
    free(handle->text);
    free(handle);
}

/* The lower half of a number is the slot plus 1. */
static size_t handle_slot(hvd_handle number)
{
    return (size_t)(uint32_t)number - 1;
}

/* NULL: there is not such a handle. */
static struct handle *handle_find(const struct handles *handles, hvd_handle number)
{
    size_t slot = handle_slot(number);
    struct handle *handle = slot < handles->used ? handles->slots[slot] : NULL;
    return handle != NULL && handle->number == number ? handle : NULL;
}

static void handle_release(struct handles *handles, struct handle *handle)
{
    size_t slot = handle_slot(handle->number);
    handles->slots[slot] = NULL;
    MEM_ADD_ROOM(handles->free_slots, handles->free_count, handles->free_room) = slot;
    handle_destroy(handle);
}

/* NULL is a handle that is not known. */
static enum hvd_status handle_status(const struct handle *handle, struct error *err)
{
    if (handle == NULL) {
        error_set(err, "there is not a handle with this number");
        return HVD_ERR_UNKNOWN_HANDLE;
    }
    if (handle->text != NULL)
        error_set(err, "%s", handle->text);
    return handle->pending > 0 ? HVD_IN_PROGRESS : handle->status;
}

static void *run_callbacks(void *argument)
{
    struct handles *handles = argument;
    pthread_mutex_lock(&handles->lock);
    while (handles->first != NULL || !handles->ending) {
        struct callback *call = handles->first;
        if (call == NULL) {
            pthread_cond_wait(&handles->called, &handles->lock);
            continue;
        }
        handles->first = call->next;
        if (handles->first == NULL)
            handles->end = &handles->first;
        pthread_mutex_unlock(&handles->lock);
        call->function(call->context, call->number, call->status);
        pthread_mutex_lock(&handles->lock);
        struct handle *handle = handle_find(handles, call->number);
        if (call->release && handle != NULL)
            handle_release(handles, handle);
        free(call);
    }
    pthread_mutex_unlock(&handles->lock);
    return NULL;
}

struct handles *handles_create(uint32_t generation, struct error *err)
{
    struct handles *handles = mem_alloc(sizeof *handles);
    handles->generation = generation;
    atomic_init(&handles->waits, 0);
    handles->end = &handles->first;
    pthread_mutex_init(&handles->lock, NULL);
    pthread_cond_init(&handles->called, NULL);
    int code = thread_start(&handles->thread, "hvd-callbacks", run_callbacks, handles);
    if (code == 0)
        return handles;
    error_errno(err, code, "cannot start the thread for callbacks");
    pthread_mutex_destroy(&handles->lock);
    pthread_cond_destroy(&handles->called);
    free(handles);
    return NULL;
}

uint32_t handles_destroy(struct handles *handles)
{
    if (handles == NULL)
        return 0;
    pthread_mutex_lock(&handles->lock);
    handles->ending = true;
    pthread_cond_signal(&handles->called);
    pthread_mutex_unlock(&handles->lock);
    pthread_join(handles->thread, NULL);
    for (size_t i = 0; i < handles->used; i++)
        if (handles->slots[i] != NULL)
            handle_destroy(handles->slots[i]);
    uint32_t generation = handles->generation;
    pthread_mutex_destroy(&handles->lock);
    pthread_cond_destroy(&handles->called);
    free(handles->slots);
    free(handles->free_slots);
    free(handles);
    return generation;
}

/* Gives it a slot and a number. */
static void handle_place(struct handles *handles, struct handle *handle)
{
    size_t slot =
        handles->free_count > 0 ? handles->free_slots[--handles->free_count] : handles->used;
    if (slot == handles->used)
        MEM_ADD_ROOM(handles->slots, handles->used, handles->room) = NULL;
    handles->slots[slot] = handle;
    handles->generation = (handles->generation + 1) & 0x7fffffff;
    handle->number = (hvd_handle)handles->generation << 32 | (hvd_handle)(slot + 1);
}

/* Programs submit thousands of them in each step, so a handle is one piece of memory. */
static size_t handle_bytes(size_t count)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, sizeof(struct submission) + sizeof(struct answer), &bytes) ||
        __builtin_add_overflow(bytes, sizeof(struct handle), &bytes))
        mem_exhausted();
    return bytes;
}

struct submission *handle_create(struct handles *handles, size_t count, hvd_callback callback,
                                 void *context, bool kept, hvd_handle *number)
{
    struct handle *handle = mem_resize(NULL, handle_bytes(count)); /* faster than zeroed memory */
    *handle = (struct handle){.count = count,
                              .pending = count,
                              .callback = callback,
                              .context = context,
                              .kept = kept,
                              .value = -1};
    handle->submissions = (struct submission *)(handle + 1);
    handle->answers = (struct answer *)(handle->submissions + count);
    for (size_t i = 0; i < count; i++) {
        handle->submissions[i] = (struct submission){.handle = handle, .index = i};
        handle->answers[i] = (struct answer){.done = false};
    }
    pthread_mutex_lock(&handles->lock);
    handle_place(handles, handle);
    *number = handle->number;
    pthread_mutex_unlock(&handles->lock);
    return handle->submissions;
}

/* With the lock held: all submissions are complete. */
static void finish(struct handles *handles, struct handle *handle)
{
    atomic_store_explicit(&handle->done, true, memory_order_release);
    if (handle->waiter != NULL)
        pthread_cond_signal(handle->waiter);
    if (handle->callback == NULL)
        return;
    struct callback *call = MEM_NEW((struct callback){
        handle->callback, handle->context, handle->number, handle->status, !handle->kept, NULL});
    *handles->end = call;
    handles->end = &call->next;
    pthread_cond_signal(&handles->called);
}

/* With the lock held. */
static void complete(struct handles *handles, struct submission *submission,
                     const struct outcome *outcome)
{
    struct handle *handle = submission->handle;
    if (outcome->status != HVD_OK &&
        (handle->status == HVD_OK || submission->index < handle->failed)) {
        handle->status = outcome->status;
        handle->failed = submission->index;
        mem_replace(&handle->text, outcome->text);
    }
    handle->answers[submission->index] =
        (struct answer){.done = true,
                        .result = {.data = outcome->data,
                                   .rows = outcome->rows,
                                   .splits = outcome->splits,
                                   .split_count = outcome->split_count,
                                   .last_joined = outcome->number}};
    handle->value = outcome->number;
    handle->launched -= submission->launched ? 1 : 0;
    submission->launched = false;
    handles->completed++;
    if (--handle->pending == 0)
        finish(handles, handle);
}

void submission_complete(struct handles *handles, struct submission *submission,
                         const struct outcome *outcome)
{
    pthread_mutex_lock(&handles->lock);
    complete(handles, submission, outcome);
    pthread_mutex_unlock(&handles->lock);
}

void submissions_complete(struct handles *handles, const struct part *parts, size_t count,
                          const struct outcome *outcomes)
{
    pthread_mutex_lock(&handles->lock);
    for (size_t i = 0; i < count; i++)
        if (parts[i].token != NULL)
            complete(handles, parts[i].token, &outcomes[i]);
    pthread_mutex_unlock(&handles->lock);
}

void submissions_fail(struct handles *handles, const struct part *parts, size_t count,
                      enum hvd_status status, const char *text)
{
    const struct outcome outcome = {.status = status, .text = text, .number = -1};
    for (size_t i = 0; i < count; i++)
        if (parts[i].token != NULL)
            submission_complete(handles, parts[i].token, &outcome);
}

void submission_launched(struct handles *handles, struct submission *submission)
{
    pthread_mutex_lock(&handles->lock);
    struct handle *handle = submission->handle;
    submission->launched = true;
    handle->launched++;
    if (handle->waiter != NULL)
        pthread_cond_signal(handle->waiter);
    pthread_mutex_unlock(&handles->lock);
}

void handles_wait_begin(struct handles *handles)
{
    atomic_fetch_add(&handles->waits, 1);
}

void handles_wait_end(struct handles *handles)
{
    atomic_fetch_sub(&handles->waits, 1);
}

bool handles_are_awaited(const struct handles *handles)
{
    return atomic_load(&handles->waits) > 0;
}

uint64_t handles_completed(struct handles *handles)
{
    pthread_mutex_lock(&handles->lock);
    uint64_t count = handles->completed;
    pthread_mutex_unlock(&handles->lock);
    return count;
}

void handle_discard(struct handles *handles, hvd_handle number)
{
    pthread_mutex_lock(&handles->lock);
    handle_release(handles, handle_find(handles, number));
    pthread_mutex_unlock(&handles->lock);
}

enum hvd_status handle_poll(struct handles *handles, hvd_handle number, struct error *err)
{
    pthread_mutex_lock(&handles->lock);
    enum hvd_status status = handle_status(handle_find(handles, number), err);
    pthread_mutex_unlock(&handles->lock);
    return status;
}

void handle_pending(struct handles *handles, hvd_handle number,
                    void (*each)(void *context, int32_t set, const struct submission *submission),
                    void *context)
{
    for (size_t i = 0;; i++) {
        const struct submission *submission = NULL;
        int32_t set = -1;
        pthread_mutex_lock(&handles->lock);
        const struct handle *handle = handle_find(handles, number);
        while (handle != NULL && i < handle->count && handle->answers[i].done)
            i++;
        if (handle != NULL && i < handle->count) {
            submission = &handle->submissions[i];
            set = submission->set;
        }
        pthread_mutex_unlock(&handles->lock);
        if (submission == NULL)
            return;
        each(context, set, submission);
    }
}

/* ---- Waiting for a handle -------------------------------------------------------------------- */

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

/* Leaves the processor core to its other thread for a moment. */
static void pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

/* With the lock held, which it gives up meanwhile. The set's thread may have the same core, and the
 * threads that complete the handle need the lock, so this mostly pauses. */
static int look_again(struct handles *handles, const struct handle *handle, int64_t limit_ns)
{
    bool done = false;
    pthread_mutex_unlock(&handles->lock);
    for (int i = 0; i < LOOKS && !done; i++) {
        pause_briefly();
        done = atomic_load_explicit(&handle->done, memory_order_acquire);
    }
    if (!done)
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
            rc = look_again(handles, handle, limit_ns);
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
                            int32_t *number_out, struct error *err)
{
    enum hvd_status status = handle_status(handle, err);
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
                            struct error *err)
{
    enum hvd_status status = HVD_IN_PROGRESS;
    pthread_mutex_lock(&handles->lock);
    struct handle *handle = handle_find(handles, number);
    if (handle == NULL || (handle->pending == 0 && handle->waiter == NULL))
        status = take(handles, handle, results, NULL, err);
    pthread_mutex_unlock(&handles->lock);
    return status;
}

enum hvd_status handle_wait(struct handles *handles, hvd_handle number, int64_t timeout_ms,
                            struct results results, int32_t *number_out, struct error *err)
{
    pthread_mutex_lock(&handles->lock);
    struct handle *handle = handle_find(handles, number);
    enum hvd_status status;
    if (handle != NULL && handle->waiter != NULL) {
        status = HVD_ERR_BUSY;
        error_set(err, "another thread waits for this handle");
    } else if (handle != NULL && handle->pending > 0 && !wait_for(handles, handle, timeout_ms)) {
        status = HVD_ERR_TIMEOUT;
        error_set(err, "the operation was not complete within the time limit");
    } else {
        status = take(handles, handle, results, number_out, err);
    }
    pthread_mutex_unlock(&handles->lock);
    return status;
}
