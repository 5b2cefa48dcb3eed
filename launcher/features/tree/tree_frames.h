/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What goes through other agents: the results of MPI's steps on all nodes. An agent takes them in
 * the order of the driver: a rank may put a key again between two fences, and the last value
 * counts. All else goes on the agent's own link to the driver, and so does all that agents send.
 * Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/frame.h"

#define TREE_TICK_MS 250
#define TREE_PATIENCE 20 /* ticks; then what nobody has confirmed is sent again */
/* However short --hang-timeout is: an agent confirms within one tick, and others are on the way. */
#define TREE_PATIENCE_LEAST 5
#define TREE_TRIES 2      /* times that an agent whose results were late connects again */
#define TREE_DOWN_BLOCK 2 /* the number of TreeDown.block in control.proto */
/* More than any packet can carry, so that it only arrives where results do. */
#define TREE_PROOF_BYTES ((size_t)64 << 10)
/* Bytes of results. Smaller ones gain nothing, and of larger ones an agent has too many copies. */
#define TREE_LEAST_BYTES ((size_t)256)
#define TREE_MOST_BYTES ((size_t)16 << 20)
/* What node_link_takes() must grant beyond a result: the rest of the queue is for data that only
 * this agent has asked for. */
#define TREE_SPARE_BYTES ((size_t)48 << 20)

static inline bool tree_takes(uint32_t type)
{
    return type == FRAME_MPI_COLLECTED;
}
