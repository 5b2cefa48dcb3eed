/* SPDX-License-Identifier: Apache-2.0 */
/* The start of the workers of a crew: what differs between them. */
#pragma once

#include "agent/crew_progress.h"
#include "agent/crew_setup.h"
#include "agent/worker.h"

#define CREW_START_MAX 128 /* workers in one turn of the loop */

/* Starts the workers [from, to) of PREPARE, at most CREW_START_MAX, after crew_setup_env(), or the
 * first of them when that takes long. Returns how many it has started, at least one. The state of
 * each says what came of it. `progress` may be NULL. `started` is for those that a spawner
 * (crew_config.h) has taken, with the worker as the context. */
int crew_start_workers(struct crew_setup *setup, const struct crew_progress *progress,
                       struct worker *workers, int from, int to,
                       void (*started)(void *context, pid_t pid, const struct error *err));
