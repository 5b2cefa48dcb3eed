/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A suspended job (Ctrl-Z): the workers are stopped, then the launcher stops too. No limit of time
 * runs meanwhile (D5).
 */
#pragma once

#include "driver/job/agent_frame.h"
#include "driver/job/job.h"

struct suspension;

struct suspension *suspension_create(struct job *job);
void suspension_destroy(struct suspension *suspension); /* accepts NULL */

/* The user wants the job to stop: returns at once; we stop when all agents have answered. */
void suspension_begin(struct suspension *suspension);
void suspension_end(struct suspension *suspension);

/* SUSPENDED: an agent has stopped its workers. */
int suspension_answered(struct job *job, struct node_link *node, const struct agent_frame *frame);
