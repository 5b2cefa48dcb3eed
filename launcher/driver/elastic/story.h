/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells the user about epochs: a line for each, an event with the time of every phase in --events,
 * and the totals at the end.
 */
#pragma once

#include "driver/job/job.h"
#include "model/elastic/elastic.h"

struct elastic_story;
struct json_t;

struct elastic_story *elastic_story_create(struct job *job);
void elastic_story_destroy(struct elastic_story *story); /* accepts NULL */

/* All ranks of the epoch run. */
void elastic_story_resumed(struct elastic_story *story, const struct elastic_facts *facts,
                           const struct elastic_plan *plan);

/* All ranks of the epoch have finished their rendezvous, at `now_ms` of the clock of the facts. */
void elastic_story_met(struct elastic_story *story, const struct elastic_facts *facts,
                       int64_t now_ms);

/* A rank has reported what it has done in this epoch, at `at_ms` of that clock. The user
 * hears of the first one after a change. */
void elastic_story_progressed(struct elastic_story *story, const struct elastic_facts *facts,
                              int rank, int64_t at_ms);

/* A line that was printed: an event for --events. The last lines are kept for `hvdrun status`. */
void elastic_story_note(struct elastic_story *story, const char *line);
/* Adds to the status: the last lines, the last epochs, how many epochs each cause has led to, and
 * how long the changes have taken. */
void elastic_story_status(const struct elastic_story *story, const struct elastic_facts *facts,
                          struct json_t *root);

/* The last line of a job that had more than one epoch. */
void elastic_story_end(const struct elastic_story *story, const struct elastic_facts *facts);

/* Adds the part of --report about epochs, "elastic". */
void elastic_story_report(const struct elastic_story *story, const struct elastic_facts *facts,
                          struct json_t *root);
