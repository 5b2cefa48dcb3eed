/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes that a dead agent leaves on this machine. The driver is a subreaper above its local
 * agents, so these processes become its children. The driver kills and reaps them (D6). It spares
 * live agents and their descendants.
 */
#pragma once

#include "driver/job/job.h"

struct orphans;

/* Kills from the loop until only live agents remain, at most every 20 ms however often it is
 * called. */
void orphans_sweep(struct orphans *orphans);

/* Without the loop, at the very end: kills and reaps all our descendants, for at most
 * `limit_ms`. false: some could not be killed. */
bool orphans_end(struct orphans *orphans, int64_t limit_ms);
