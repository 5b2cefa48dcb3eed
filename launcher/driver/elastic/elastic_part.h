/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thin part of an elastic job: what happens becomes an event for the core
 * (model/elastic/elastic.h), and its actions are carried out here, one after the other; what an
 * action brings about at once waits in a queue, so the core is never entered twice. Hosts have the
 * same number in the core and in job->nodes.
 *
 *   elastic_part     composes: links, timer, verdict
 *   elastic_act      carries out the actions
 *   elastic_source   which hosts there are
 *   elastic_epoch    PREPARE, READY, START of one epoch
 *   elastic_rejoin   what workers say to the rendezvous, and what they are told
 *   elastic_story    the lines, events and figures about epochs
 *   elastic_control  what the control socket is asked
 */
#pragma once

#include "driver/job/job.h"
#include "model/elastic/elastic.h"
#include "rendezvous/store.h"

struct elastic_part;

/* NULL: the settings cannot work (a command that cannot be split, a script that cannot be run). */
struct elastic_part *elastic_part_create(struct job *job, struct error *err);
void elastic_part_begin(struct elastic_part *part);
/* No process of the job is left: the control socket goes, and who keeps its folder. Accepts NULL.
 */
void elastic_part_close(struct elastic_part *part);
void elastic_part_destroy(struct elastic_part *part); /* accepts NULL */

/* Something has happened; `event` is copied. */
void elastic_part_feed(struct elastic_part *part, const struct elastic_event *event);

/* News of a node. Those that may come in any job accept a NULL part. */
void elastic_part_hello(struct elastic_part *part, struct node_link *node);
void elastic_part_unreached(struct elastic_part *part, struct node_link *node, const char *why);
void elastic_part_node_lost(struct elastic_part *part, struct node_link *node, const char *why);
void elastic_part_node_gone(struct elastic_part *part, struct node_link *node); /* as agreed */
void elastic_part_node_ended(struct elastic_part *part, struct node_link *node);
int elastic_part_terminate(struct elastic_part *part, struct node_link *node, const uint8_t *body,
                           size_t length);
int elastic_part_notified(struct elastic_part *part, struct node_link *node, const uint8_t *body,
                          size_t length);

/* News of a worker. */
void elastic_part_started(struct elastic_part *part, int seat);
void elastic_part_exited(struct elastic_part *part, const struct exit_event *event);
void elastic_part_finished(struct elastic_part *part, int seat);
void elastic_part_aborted(struct elastic_part *part, int seat);

/* The job is suspended: its clock stands still. */
void elastic_part_pause(struct elastic_part *part, bool paused);

/* The end of the job has begun, whoever wanted it. */
void elastic_part_ending(struct elastic_part *part);

/* Replaces what the exit policy says, which has not heard of the workers. */
void elastic_part_verdict(const struct elastic_part *part, struct verdict *out);

const struct strv *elastic_part_probe(const struct elastic_part *part); /* words; maybe none */
const struct elastic *elastic_part_core(const struct elastic_part *part);
struct elastic_epoch *elastic_part_epoch(const struct elastic_part *part);
struct elastic_rejoin *elastic_part_rejoin(const struct elastic_part *part);
struct elastic_source *elastic_part_source(const struct elastic_part *part);
struct elastic_story *elastic_part_story(const struct elastic_part *part);
int64_t elastic_part_now_ms(const struct elastic_part *part); /* the core's clock */
