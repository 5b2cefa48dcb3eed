/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a failing schedule smaller, as long as it fails in the same way. Each try runs in a child
 * process, so that a core that crashes or never returns is a failure like any other.
 */
#pragma once

#include "sim/world.h"

#define TRIAL_CRASHED (-1) /* a signal, or no return within the limit */

/* How the schedule ends in a child: an invariant, or TRIAL_CRASHED. */
int trial(struct world *world, const struct schedule *schedule);

/* `outcome` as trial() gave it. Returns the number of tries. */
int shrink(struct world *world, struct schedule *schedule, int outcome);
