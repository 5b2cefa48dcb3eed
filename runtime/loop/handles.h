/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles: what a program holds for operations in flight. A handle has one or more submissions, and
 * is complete when all of them are. Then its callback runs, in the callback thread.
 *
 * One lock guards all handles. It is never held while another lock is taken, or a callback runs.
 */
#pragma once

#include <stdbool.h>

#include "core/action.h"
#include "engine/nccl/gpus.h"
#include "include/hvd.h"

struct handle;

/* One tensor of a handle. The pointers to memory are the program's, but for `splits`. */
struct submission {
    struct handle *handle;
    size_t index;
    int32_t set;
    const void *input;
    void *output;
    int64_t *splits;        /* alltoall: rows for each set rank, owned; NULL: equal parts */
    struct gpu_mark *ready; /* on a GPU: when the input is complete, owned; NULL: it is */
    bool launched;          /* see submission_launched(); under the lock */
};

/* What a submission gives back besides its buffers. `data` and `splits` go to the submission. */
struct outcome {
    enum hvd_status status;
    const char *text; /* borrowed */
    void *data;
    int64_t rows;
    int64_t *splits;
    int32_t split_count;
    int32_t number; /* join: the last rank; add_process_set: the number of the set */
};

#define OUTCOME_INIT             \
    {                            \
        .text = "", .number = -1 \
    }

struct handles;

/* Starts the callback thread. `generation` makes numbers that were never given out before. NULL: no
 * thread can start. */
struct handles *handles_create(uint32_t generation, struct error *err);
/* Every handle must be complete. Runs the callbacks that remain, and ends the thread. Returns the
 * generation for the next time. Accepts NULL. */
uint32_t handles_destroy(struct handles *handles);

/* A handle with `count` submissions, which the caller fills in. `kept`: the program releases it. */
struct submission *handle_create(struct handles *handles, size_t count, hvd_callback callback,
                                 void *context, bool kept, hvd_handle *number);
/* The submissions were not made: the handle is gone, and its callback does not run. */
void handle_discard(struct handles *handles, hvd_handle number);

void submission_complete(struct handles *handles, struct submission *submission,
                         const struct outcome *outcome);

/* A GPU has the submission now, so it is complete soon. From now on, a thread that waits for the
 * handle polls it, for at most 20 ms. If it slept, it would wake up late. */
void submission_launched(struct handles *handles, struct submission *submission);

/* The same for the parts of one operation, whose tokens are submissions or NULL. A thread that
 * waits for the first of them does not begin to compete for the lock before the last one is
 * complete. */
void submissions_complete(struct handles *handles, const struct part *parts, size_t count,
                          const struct outcome *outcomes);
void submissions_fail(struct handles *handles, const struct part *parts, size_t count,
                      enum hvd_status status, const char *text);

/* A thread is about to wait for a handle, and has done so. While one does, what is in flight on a
 * GPU is worth a closer look. */
void handles_wait_begin(struct handles *handles);
void handles_wait_end(struct handles *handles);
bool handles_are_awaited(const struct handles *handles);

/* Submissions that are complete so far. */
uint64_t handles_completed(struct handles *handles);

enum hvd_status handle_poll(struct handles *handles, hvd_handle number, struct error *err);

/* What a wait needs to know of the submissions that are pending. Calls `each` without a lock, so a
 * submission may be complete, and even gone, by then: its address is only a name for it. */
void handle_pending(struct handles *handles, hvd_handle number,
                    void (*each)(void *context, int32_t set, const struct submission *submission),
                    void *context);

/* Where the results of a handle go: an array whose elements have the size that the first one says.
 * A handle with more submissions keeps the rest, and frees it. */
struct results {
    struct hvd_result *items; /* NULL: the caller does not want them */
    size_t count;
};

/* As hvd_wait_grouped(). `number_out` (may be NULL) receives
 * outcome.number. */
enum hvd_status handle_wait(struct handles *handles, hvd_handle number, int64_t timeout_ms,
                            struct results results, int32_t *number_out, struct error *err);

/* The same for a handle that is complete. HVD_IN_PROGRESS: it is not, or another thread waits for
 * it. */
enum hvd_status handle_take(struct handles *handles, hvd_handle number, struct results results,
                            struct error *err);
