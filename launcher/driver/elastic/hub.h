/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the core of an elastic job (model/elastic/elastic.h) meets the driver: what happens becomes
 * an event for the core, and its actions are carried out one after the other. What an action brings
 * about at once waits in a queue, so the core is never entered twice. The core's deadlines are a
 * timer here, and its clock stands still while the job is suspended.
 */
#pragma once

#include "driver/job/job.h"
#include "model/elastic/elastic.h"

struct elastic_hub;

struct elastic_hub_ops {
    void (*act)(void *context, const struct elastic_action *action);
    /* The core may know hosts that had not been listed before. Before the actions of the event. */
    void (*listed)(void *context);
};

/* `config` is used during the call only. */
struct elastic_hub *elastic_hub_create(struct job *job, const struct elastic_config *config,
                                       const struct elastic_hub_ops *ops, void *context);
void elastic_hub_destroy(struct elastic_hub *hub); /* accepts NULL */

/* Something has happened; `event` is copied. */
void elastic_hub_feed(struct elastic_hub *hub, const struct elastic_event *event);

/* The job was suspended, or goes on: the timer follows. */
void elastic_hub_clock_changed(struct elastic_hub *hub);

struct job *elastic_hub_job(const struct elastic_hub *hub);
const struct elastic *elastic_hub_core(const struct elastic_hub *hub);
