/* SPDX-License-Identifier: Apache-2.0 */
/* The start of one worker: what differs between the workers of a crew. */
#pragma once

#include "agent/crew_progress.h"
#include "agent/crew_setup.h"
#include "agent/worker.h"

/* Starts the worker with this index in PREPARE, after crew_setup_env(). `progress` may be NULL. -1:
 * it could not start, and its state says so. */
int crew_spawn(struct crew_setup *setup, const struct crew_progress *progress, int index,
               struct worker *worker);
