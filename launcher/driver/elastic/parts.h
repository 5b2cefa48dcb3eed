/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of an elastic job. elastic_kind.c creates and composes them. act.c and control.c borrow
 * several parts, to carry out what the core or the user wants.
 *
 *   hub        the core with its events, actions and clock
 *   source     the hosts that the job may use
 *   epoch      PREPARE, READY, START of one epoch
 *   story      the lines, events and figures about epochs
 *   rendezvous requests of workers that rejoin or join, and the answers
 *
 * A host has the same number in the core and in job->nodes.
 */
#pragma once

#include "driver/elastic/epoch.h"
#include "driver/elastic/hub.h"
#include "driver/elastic/rendezvous.h"
#include "driver/elastic/source.h"
#include "driver/elastic/story.h"

struct elastic_parts {
    struct job *job;
    struct elastic_hub *hub;
    struct elastic_source *source;
    struct elastic_epoch *epoch;
    struct elastic_story *story;
    struct elastic_rendezvous *rendezvous;
};

/* Of an elastic job, whose kind_data begins with them. */
static inline const struct elastic_parts *elastic_parts_of(const struct job *job)
{
    return job->kind_data;
}
