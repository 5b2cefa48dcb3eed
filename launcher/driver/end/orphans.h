/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a dead agent leaves behind on this machine. The driver is a subreaper above its local
 * agents, so those processes become its children; it kills and reaps them (D6). Live agents and
 * what is below them are spared.
 */
#pragma once

#include "driver/job/job.h"

/* Kills until nothing but live agents is left; goes on by itself. */
void orphans_sweep(struct job *job);

/* Without the loop, at the very end: kills and reaps whatever is below us, for `limit_ms` at most.
 * false: something could not be killed. */
bool orphans_end(struct job *job, int64_t limit_ms);
