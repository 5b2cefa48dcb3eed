/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where other parts of libhvd join the loop: a timeline, and the line to the launcher. They may be
 * set at any time; a call that has begun goes on with what was set before.
 */
#pragma once

#include "core/action.h"
#include "core/trace.h"

struct loop_joints {
    /* Of all process sets, on their root: a tensor has waited for too long. In the thread of the
     * set; it must return soon. True: the user hears of it in another way. NULL: none. */
    bool (*stalled)(void *context, int32_t set, const struct stall *stall);
    void (*goes_on)(void *context, int32_t set); /* no tensor of the set waits too long any more */
    void *context;
    const struct trace *trace; /* NULL: no timeline. It must live until the library is shut down. */
};

/* From the next hvd_init() on. `joints` NULL: none. */
void loop_set_joints(const struct loop_joints *joints);

/* The launcher says that this rank has ended: everything that is pending fails at once with
 * HVD_ERR_PEER_LOST. From any thread; does nothing if the library is not initialized, or if `rank`
 * is not a rank of the job. */
void loop_peer_lost(int rank, const char *why);

/* The launcher says that this rank has ended with status 0. Most likely it has shut the library
 * down, and its peers learn that from itself. If they do not within a second, it is lost: a child
 * that it left behind may keep its connections open. As above otherwise. */
void loop_peer_left(int rank);

/* Of a process set whose root is this rank: the oldest tensor of a group of ranks that wait. NULL:
 * nothing waits in the set. */
typedef void loop_wait(void *context, int32_t set, const struct stall *stall);

/* Tells which tensors wait for ranks now, one call for each group of ranks. From any thread, and no
 * operation delays it. Does nothing if the library is not initialized. */
void loop_waits(loop_wait *take, void *context);

/* How many submissions of this rank are complete since hvd_init(), so that a launcher sees whether
 * the job makes progress. 0: the library is not initialized. From any thread. */
uint64_t loop_completed(void);
