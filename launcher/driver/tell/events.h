/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --events FILE: what happens in the job, one JSON object on a line: "time" (seconds since 1970,
 * with microseconds), "event", and its details. Some of it goes to the command of --on-event, too.
 * No function does anything if the user wants no events.
 */
#pragma once

#include "driver/job/job.h"

struct json_t;

/* After the last event, as events_command_finish(). */
bool events_finish(const struct job *job, void (*over)(void *context), void *context);

void events_job(const struct job *job, const char *event);
void events_signal(const struct job *job, int signal);
void events_node(const struct job *job, const char *event, const struct node_link *node,
                 const char *text);
void events_rank(const struct job *job, const char *event, int seat);
void events_object(const struct job *job, const char *event, struct json_t *fields); /* taken */
/* The failure on the seat `first` is most likely a consequence of the worker on `seat`. */
void events_likely_cause(const struct job *job, int seat, int first, const char *text);
void events_text(const struct job *job, const char *event, const char *text);
/* `silent`: it is not behind, but silent (features/straggler/straggler.h). `text` NULL: not any
 * more. */
void events_straggler(const struct job *job, int seat, bool silent, const char *text);
