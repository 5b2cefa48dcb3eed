/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events on their way to the writer of a timeline, as bytes in a buffer. Pure: the timeline locks
 * it. What does not fit is counted, and not kept.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "core/trace.h"

/* 0; -1: there is no room. `queue` has a limit. */
int timeline_queue_put(struct buf *queue, const struct trace_event *event);

/* Takes the first event from the queue; false: there is none. What it points to is valid until the
 * queue changes; `shape` points to room for 32 lengths. */
bool timeline_queue_take(struct buf *queue, struct trace_event *event, int64_t shape[32]);
