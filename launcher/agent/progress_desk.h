/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends to the driver how far the workers of this node are. The first report goes at once, and
 * later ones at most every PROGRESS_PERIOD_MS, in one frame for all workers. If a worker reports
 * several times within that period, only its last report goes.
 */
#pragma once

#include "agent/post.h"
#include "io/loop.h"
#include "model/progress/progress.h"

#define PROGRESS_PERIOD_MS 500

struct progress_desk;

/* `post` is the agent's. */
struct progress_desk *progress_desk_create(struct loop *loop, const struct post *post);
void progress_desk_destroy(struct progress_desk *desk); /* accepts NULL */

/* Takes what `progress` owns. The worker sits on `seat`, was started in `epoch`, and said so at
 * `when_ns` of the monotonic clock. */
void progress_desk_take(struct progress_desk *desk, uint32_t epoch, uint32_t seat, int64_t when_ns,
                        struct progress *progress);

/* Sends now what waits: a worker has ended, and that frame comes next. */
void progress_desk_flush(struct progress_desk *desk);
