/* SPDX-License-Identifier: Apache-2.0 */
/* The streams and events of the fake GPUs. */
#pragma once

#include <stdbool.h>

struct stream;
struct event;

struct stream *stream_new(void);
void stream_end(struct stream *stream); /* what was added still runs */
void stream_sync(struct stream *stream);

struct event *event_new(void);
void event_free(struct event *event);
void event_record(struct event *event, struct stream *stream);
void event_wait(struct event *event, struct stream *stream); /* the stream does */
bool event_done(struct event *event);
