/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the end of a worker of an elastic job means, by the state that the job is in.
 */
#pragma once

#include "model/elastic/job.h"

/* When that was which the event tells: as it says itself, but never later than now. */
int64_t elastic_exits_happened(const struct elastic *e, const struct elastic_event *event);

/* The first failure opens a change; 0 is believed as long as nobody fails. */
void elastic_exits_running(struct elastic *e, const struct elastic_event *event);
/* WAITING, PREPARING, AGREEING: the first failure is the cause if none is known, the rest follows
 * from it; 0 is not believed. */
void elastic_exits_changing(struct elastic *e, const struct elastic_event *event);
/* Who had ended before our signal was sent did so for a reason of its own. */
void elastic_exits_stopping(struct elastic *e, const struct elastic_event *event);
void elastic_exits_ending(struct elastic *e, const struct elastic_event *event);
