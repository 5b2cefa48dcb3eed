/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connects the core of an elastic job (model/elastic/elastic.h) with the driver. What happens
 * becomes an event for the core, and the hub carries out the actions of the core one after the
 * other. Immediate results of an action wait in a queue, so the core is never entered twice. A
 * timer here keeps the deadlines of the core. The clock of the core stops while the job is
 * suspended.
 */
#pragma once

#include "driver/job/job.h"
#include "model/elastic/elastic.h"

struct elastic_hub;

struct elastic_hub_ops {
    void (*act)(void *context, const struct elastic_action *action);
    /* The core may know new hosts. Called before the actions of the event. */
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
