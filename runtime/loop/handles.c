/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/handles.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/thread.h"
#include "loop/handle.h"

static void *run_callbacks(void *argument)
{
    struct handles *handles = argument;
    pthread_mutex_lock(&handles->lock);
    for (;;) {
        struct callback *call = handles->first;
        if (call == NULL && handles->ending)
            break;
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

static hvd_handle number_new(struct handles *handles)
{
    size_t slot;
    if (handles->free_count > 0) {
        slot = handles->free_slots[--handles->free_count];
    } else {
        if (handles->used == handles->room) {
            handles->room = 2 * handles->room + 64;
            handles->slots =
                mem_resize_array(handles->slots, handles->room, sizeof(struct handle *));
            handles->free_slots =
                mem_resize_array(handles->free_slots, handles->room, sizeof(size_t));
        }
        slot = handles->used++;
    }
    handles->generation = (handles->generation + 1) & 0x7fffffff;
    return (hvd_handle)handles->generation << 32 | (hvd_handle)(slot + 1);
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
    handle->number = number_new(handles);
    handles->slots[handle_slot(handle->number)] = handle;
    *number = handle->number;
    pthread_mutex_unlock(&handles->lock);
    return handle->submissions;
}

/* With the lock held: all submissions are complete. */
static void finish(struct handles *handles, struct handle *handle)
{
    if (handle->waiter != NULL)
        pthread_cond_signal(handle->waiter);
    if (handle->callback == NULL)
        return;
    struct callback *call = mem_alloc(sizeof *call);
    *call = (struct callback){handle->callback, handle->context, handle->number,
                              handle->status,   !handle->kept,   NULL};
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
        free(handle->text);
        handle->text = mem_strdup(outcome->text);
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

void submissions_complete(struct handles *handles, struct submission *const *submissions,
                          const struct outcome *outcomes, size_t count)
{
    pthread_mutex_lock(&handles->lock);
    for (size_t i = 0; i < count; i++)
        if (submissions[i] != NULL)
            complete(handles, submissions[i], &outcomes[i]);
    pthread_mutex_unlock(&handles->lock);
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

enum hvd_status handle_poll(struct handles *handles, hvd_handle number, char *text, size_t room)
{
    pthread_mutex_lock(&handles->lock);
    enum hvd_status status = handle_status(handle_find(handles, number), text, room);
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
