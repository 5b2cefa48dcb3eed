/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What goes through other agents: the results of MPI's steps on all nodes. Each names the step it
 * belongs to, so its order among other frames does not matter. All else goes on the agent's own
 * link to the driver, and so does all that agents send. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/frame.h"

#define TREE_TICK_MS 250
#define TREE_PATIENCE 20  /* ticks; then what nobody has confirmed is sent again */
#define TREE_DOWN_BLOCK 2 /* the number of TreeDown.block in control.proto */

static inline bool tree_takes(uint32_t type)
{
    return type == FRAME_MPI_COLLECTED || type == FRAME_TREE_BEGIN;
}
