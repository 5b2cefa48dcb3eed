/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a dead agent leaves behind on this machine. The driver is a subreaper above its local
 * agents, so those processes become its children; it kills and reaps them (D6). Live agents and
 * what is below them are spared.
 */
#pragma once

#include "driver/job/job.h"

struct orphans;

struct orphans *orphans_create(struct job *job);
void orphans_destroy(struct orphans *orphans); /* accepts NULL */

/* Kills until nothing but live agents is left; goes on from the loop. */
void orphans_sweep(struct orphans *orphans);

/* Without the loop, at the very end: kills and reaps whatever is below us, for `limit_ms` at most.
 * false: something could not be killed. */
bool orphans_end(struct orphans *orphans, int64_t limit_ms);
