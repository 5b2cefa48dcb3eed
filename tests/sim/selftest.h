/* SPDX-License-Identifier: Apache-2.0 */
/* Every invariant can fail: each mutation of the core must be noticed by the one it is meant for.
 */
#pragma once

#include "sim/world.h"

/* Returns the number of mutations that went unnoticed, and prints them. */
int selftest(struct world *world, bool verbose);
