/* SPDX-License-Identifier: Apache-2.0 */
/* A handle, and the table of all handles: the inside of handles.h. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "loop/submission.h"

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
    size_t room, used; /* slots from `used` on were never used */
    size_t *free_slots, free_count;
    uint32_t generation;
    uint64_t completed;
    atomic_int waits; /* threads that wait for a handle */
    pthread_t thread;
    pthread_cond_t called;
    struct callback *first, **end;
    bool ending;
};

/* All with the lock held. */

size_t handle_slot(hvd_handle number); /* where it is in the table, if it is there */
/* NULL: there is not such a handle. */
struct handle *handle_find(const struct handles *handles, hvd_handle number);
void handle_destroy(struct handle *handle);
void handle_release(struct handles *handles, struct handle *handle);
/* NULL is a handle that is not known. */
enum hvd_status handle_status(const struct handle *handle, char *text, size_t room);
