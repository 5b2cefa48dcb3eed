/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What goes through other agents: the results of MPI's steps on all nodes. Answers about one rank
 * are in the same order: a rank may put a key again, and the last value counts. All else goes on
 * the agent's own link to the driver, and so does all that agents send. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/frame.h"

#define TREE_TICK_MS 250
#define TREE_PATIENCE 12 /* ticks; then what nobody has confirmed is sent again */
/* Of this, or of a longer --hang-timeout, a quarter is the limit for what is late. With a shorter
 * one there is no tree. */
#define TREE_HANG_LEAST_MS 4000
#define TREE_TRIES 2      /* times that an agent whose results were late connects again */
#define TREE_DOWN_BLOCK 2 /* the number of TreeDown.block in control.proto */
/* More than any packet can carry, so that it only arrives where results do. */
#define TREE_PROOF_BYTES ((size_t)64 << 10)
/* Bytes of results. Smaller ones gain nothing, and of larger ones an agent has too many copies. */
#define TREE_LEAST_BYTES ((size_t)256)
#define TREE_MOST_BYTES ((size_t)16 << 20)
/* What half of a link's queue must have beyond a result that goes through others: for data
 * that only this agent has asked for. */
#define TREE_SPARE_BYTES ((size_t)48 << 20)
/* If more waits at one agent for another, the driver sends it. */
#define TREE_CHILD_QUEUE_MAX ((size_t)64 << 20)

static inline bool tree_takes(uint32_t type)
{
    return type == FRAME_MPI_COLLECTED || type == FRAME_MPI_MODEX_DATA;
}
