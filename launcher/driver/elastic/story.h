/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the user learns about epochs: a line for each, the same with the time of every phase in
 * --events, and the sums at the end.
 */
#pragma once

#include "driver/job/job.h"
#include "model/elastic/elastic.h"

struct elastic_story;
struct json_t;

struct elastic_story *elastic_story_create(struct job *job);
void elastic_story_destroy(struct elastic_story *story); /* accepts NULL */

/* The epoch goes on with all its ranks. */
void elastic_story_resumed(struct elastic_story *story, const struct elastic_facts *facts,
                           const struct elastic_plan *plan);

/* A line that the user has been told, for --events; the last ones are remembered. */
void elastic_story_note(struct elastic_story *story, const char *line);
struct json_t *elastic_story_last(const struct elastic_story *story); /* the caller's array */

/* The last line of a job that had more than one epoch. */
void elastic_story_end(const struct elastic_story *story, const struct elastic_facts *facts);

/* Adds the part of --report about epochs, "elastic". */
void elastic_story_report(const struct elastic_story *story, const struct elastic_facts *facts,
                          struct json_t *root);
