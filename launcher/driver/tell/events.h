/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --events FILE: what happens in the job, one JSON object on a line: "time" (seconds since 1970,
 * with microseconds), "event", and its details. Every function accepts NULL, which means that the
 * user wants no events.
 */
#pragma once

#include "driver/job/job.h"

struct json_t;

struct events *events_open(const struct job *job, const char *path); /* NULL path: NULL */
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
void events_end(struct events *events, const struct job *job, const struct verdict *verdict);
