/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Divides the examples of a data set among ranks, also when their number changes in the middle of
 * an epoch of the training. The rules are those of Horovod's ElasticSampler. Pure.
 *
 * In each epoch the examples have one order, the same on all ranks: that of their numbers, or
 * shuffled by seed and epoch. The first `done` of them have been processed. The ranks share the
 * others in turns: rank r takes each size-th one, from the r-th on. So that all ranks have equally
 * many, the list is filled up from its own beginning.
 *
 * After a change of size, call sampler_resize() with the new size and the `done` that all ranks
 * agree on. Within an epoch each example is then processed once, but for those that fill up, and
 * for those that ranks processed and lost.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct sampler {
    int64_t examples;
    bool shuffle;
    uint64_t seed;
    int64_t epoch;
    int64_t done; /* examples that all ranks together have processed in this epoch */
    int32_t rank, size;
    int64_t *order; /* of the epoch; NULL: in the order of their numbers */
    int64_t base;   /* `done` when the present share was made */
    int64_t count;  /* of the present share: until the end of the epoch; the same on all ranks */
};

/* Epoch 0. -1: a number is out of range. */
int sampler_init(struct sampler *sampler, int64_t examples, bool shuffle, uint64_t seed,
                 int32_t rank, int32_t size, struct error *err);
void sampler_destroy(struct sampler *sampler); /* accepts an all-zero struct */

/* Begins an epoch anew, with all examples. */
void sampler_set_epoch(struct sampler *sampler, int64_t epoch);

/* Continues in `epoch` behind the first `done` examples: after a resize, or from a saved state.
 * -1: a number is out of range, and nothing has changed. */
int sampler_resize(struct sampler *sampler, int64_t epoch, int64_t done, int32_t rank, int32_t size,
                   struct error *err);

/* The number of the i-th example of this rank, 0 <= i < count. -1: there is none. */
int64_t sampler_at(const struct sampler *sampler, int64_t i);

/* Each rank has processed `examples` more of its own. */
void sampler_record(struct sampler *sampler, int64_t examples);
