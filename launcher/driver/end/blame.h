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

/* Names the likely cause in a verdict that names the first failure. The status becomes that of the
 * cause if it exited with a code of its own, and no --exit-policy asks for another one. */
void blame_refine(const struct job *job, struct verdict *verdict);
