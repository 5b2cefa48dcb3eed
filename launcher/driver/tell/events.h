/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --events FILE: what happens in the job, one JSON object on a line: "time" (seconds since 1970,
 * with microseconds), "event", and its details. Some of it goes to the command of --on-event, too.
 * Every function accepts NULL, which means that the user wants no events.
 */
#pragma once

#include "driver/job/job.h"

struct json_t;

/* Sets job->events, to NULL if the user wants none. -1: the command cannot be read. */
int events_open(struct job *job, struct error *err);
/* After the last event, as events_command_finish(). */
bool events_finish(struct events *events, void (*over)(void *context), void *context);
void events_close(struct events *events);

void events_job(struct events *events, const char *event);
void events_signal(struct events *events, int signal);
void events_node(struct events *events, const char *event, const struct node_link *node,
                 const char *text);
void events_rank(struct events *events, const char *event, const struct job *job, int seat);
void events_object(struct events *events, const char *event, struct json_t *fields); /* borrowed */
/* The failure on the seat `first` is most likely a consequence of the worker on `seat`. */
void events_likely_cause(struct events *events, const struct job *job, int seat, int first,
                         const char *text);
void events_text(struct events *events, const char *event, const char *text);
/* `text`: how far it is behind; NULL: not any more. */
/* `silent`: it is not behind, but silent (model/usage/straggler.h). `text` NULL: not any more. */
void events_straggler(struct events *events, const struct job *job, int seat, bool silent,
                      const char *text);
void events_end(struct events *events, const struct job *job, const struct verdict *verdict);
