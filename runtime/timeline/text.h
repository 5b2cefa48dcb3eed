/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of a timeline: events become objects of Chrome's trace format, with the names that
 * Horovod uses, so that tools for Horovod's timelines can read it. Pure.
 *
 * Each tensor is a row: in Chrome's terms a process, whose name is that of the tensor. In it are
 * "NEGOTIATE_ALLREDUCE" with a mark for each rank, and "ALLREDUCE" with its activities. What begins
 * in a row also ends there, even if events are missing. An end without its beginning is skipped.
 * What is still open is ended before the next thing begins.
 *
 * Each object is one line. A comma and a newline precede it, but for the first one of a file.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "core/trace.h"

struct timeline_text;

/* Times in the text count from `origin_ns`, of the clock of the events. */
struct timeline_text *timeline_text_create(int64_t origin_ns);
void timeline_text_destroy(struct timeline_text *text); /* accepts NULL */

/* The first objects of a file. `wall_us`: the time of `origin_ns`, in microseconds since 1970. */
void timeline_text_head(const struct timeline_text *text, int64_t wall_us, struct buf *out);

/* Appends what the event means, which may be nothing. */
void timeline_text_event(struct timeline_text *text, const struct trace_event *event,
                         struct buf *out);

/* A mark: so many events are missing here. */
void timeline_text_gap(const struct timeline_text *text, uint64_t missing, int64_t time_ns,
                       struct buf *out);
