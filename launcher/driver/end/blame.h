/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks for the worker that most likely made the first one fail (model/exit/root_cause.h), with
 * what the driver knows about all workers.
 */
#pragma once

#include "driver/job/job.h"

/* For a job that goes on in another epoch. This worker may be the first that failed, and another
 * one most likely the cause. Then a message and an event say so. Call it when the output of the
 * worker has ended. */
void blame_say(const struct job *job, int seat);

/* The rank has ended in a way that can be the consequence of another rank's error. */
bool blame_may_follow(const struct job *job, int seat);

/* root_cause_comes() and root_cause_came() (model/exit/root_cause.h) */
bool blame_comes(const struct job *job, int seat);
bool blame_came(const struct job *job, int seat);
/* root_cause_follows(), of a node that has just been lost */
bool blame_follows(const struct job *job, int seat, const struct node_link *node);

/* Names the likely cause in a verdict that names the first failure. The status becomes that of the
 * cause if it exited with a code of its own, and no --exit-policy asks for another one. */
void blame_refine(const struct job *job, struct verdict *verdict);
