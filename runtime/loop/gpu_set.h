/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of a process set that works on GPUs. Its tensors go to NCCL, in a stream of the library,
 * while the set's thread goes on: it wakes up when an operation is complete.
 *
 * Each rank uses one GPU for a set: that of its first tensor. The members make NCCL's communicator
 * when their first operation runs. If NCCL is missing on one of them, the operation fails on all,
 * and the set stays usable.
 *
 * To sleep until the GPU wakes a thread takes 40 to 700 us longer than to look, the more the longer
 * it has slept. So while the program waits for an operation, the thread looks without a pause, for
 * at most 20 ms. It also goes on for 100 us after that, because a program that waits for each
 * operation submits the next one at once. Only a thread that sleeps needs a bell: to hang one takes
 * as long as to launch an operation.
 */
#pragma once

#include "engine/nccl/gpus.h"
#include "loop/channel.h"
#include "loop/runner.h"

struct gpu_set;

struct gpu_set_setup {
    struct runner *runner; /* borrowed, as all pointers */
    struct gpus *gpus;
    struct handles *handles;
    struct channel *channel; /* rings when something is complete */
    /* Submissions are complete when they are launched, and the program's streams wait for the
     * operations. An error that comes later is that of the next submission. */
    bool completes_at_launch;
    int64_t timeout_ms;          /* for connections */
    int64_t limit_ns;            /* for an operation on the GPU */
    bool (*stop)(void *context); /* whether the job has failed: nobody waits any more */
    void *context;
};

struct gpu_set *gpu_set_create(const struct gpu_set_setup *setup);
void gpu_set_destroy(struct gpu_set *set); /* after gpu_set_end(); accepts NULL */

/* From any thread: the set should use this GPU. Returns the GPU that it uses. */
int gpu_set_claim(struct gpu_set *set, int device);

/* From any thread: a thread of the program waits for what the GPU does. Then the set's thread looks
 * again and again, and does not sleep until it hears of the end. */
bool gpu_set_is_awaited(const struct gpu_set *set);

/* The rest is for the set's thread. */

/* Launches an operation, which completes its submissions later. Otherwise the set cannot be used
 * any more, and the submissions are not complete. */
enum hvd_status gpu_set_run(struct gpu_set *set, const struct part *parts, size_t count,
                            struct error *err);

/* When gpu_set_check() has something to do, if nothing rings; 0: now, INT64_MAX: never. */
int64_t gpu_set_deadline(const struct gpu_set *set);
/* Call it before the thread sleeps: it wakes up when the GPU has completed the next operation. Not
 * HVD_OK: the set cannot be used any more. */
enum hvd_status gpu_set_sleeps(struct gpu_set *set, struct error *err);
/* Completes what the GPU has completed. Not HVD_OK: the set cannot be used any more. */
enum hvd_status gpu_set_check(struct gpu_set *set, struct error *err);

/* The end. With HVD_OK, it waits for the operations, for at most the time-out. Otherwise it stops
 * them, and they fail with `status`. */
void gpu_set_end(struct gpu_set *set, enum hvd_status status, const char *text);
