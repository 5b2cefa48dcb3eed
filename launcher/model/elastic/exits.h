/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the end of a worker of an elastic job means, by the state that the job is in.
 */
#pragma once

#include "model/elastic/job.h"

/* The time of what the event reports: the event's own, but never later than now. */
int64_t elastic_exits_happened(const struct elastic *e, const struct elastic_event *event);

/* The first failure opens a change; an exit with 0 counts as success while no peer fails. */
void elastic_exits_running(struct elastic *e, const struct elastic_event *event);
/* WAITING, PREPARING, AGREEING: the first failure is the cause if none is known, the rest follows
 * from it. An exit with 0 does not count as success. */
void elastic_exits_changing(struct elastic *e, const struct elastic_event *event);
/* A worker that had ended before our signal was sent ended for a reason of its own. */
void elastic_exits_stopping(struct elastic *e, const struct elastic_event *event);
void elastic_exits_ending(struct elastic *e, const struct elastic_event *event);
