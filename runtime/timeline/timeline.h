/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a timeline (text.h) to a file, in a thread of its own. It can be started and stopped at
 * any time, again and again. While it is stopped it has no thread, and an event costs one read of
 * a flag.
 *
 * A thread that reports an event copies it under a lock, and never waits for the file. If the file
 * is slower than the events, events are dropped. Then the file has a mark with their number.
 *
 * The file is a whole JSON array after each write, so it can be read while the job runs and after
 * a crash. If a process is killed during a write, the last line may not be whole, and the end of
 * the array may be missing. Viewers accept that. An event is in the file at most about 20 ms after
 * it happened, if the disk is fast enough.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "core/trace.h"

struct timeline;

/* Times in all files count from now. `queue_bytes`: memory for events that are not written yet,
 * twice; 0: the default, 8 MiB. */
struct timeline *timeline_create(size_t queue_bytes);
void timeline_destroy(struct timeline *timeline); /* stops it; accepts NULL */

/* For the core and the loop. Valid until timeline_destroy(). Its function is NULL while the
 * timeline is stopped. */
const struct trace *timeline_trace(struct timeline *timeline);

/* Any thread may call these two. A file that is open for another path is closed first; for the same
 * path this does nothing. An old file of this name is replaced. `mark_cycles` keeps TRACE_CYCLE.
 * -1: the file cannot be created, and the timeline is stopped. */
int timeline_start(struct timeline *timeline, const char *path, bool mark_cycles,
                   struct error *err);

/* Writes what has been reported, and closes the file. -1: not all events are in the file, and `err`
 * says why. Without a start it does nothing. */
int timeline_stop(struct timeline *timeline, struct error *err);
