/* SPDX-License-Identifier: Apache-2.0 */
/* What a core is made for: a process set, this rank's place in it, and the knobs. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/message.h"
#include "core/trace.h"
#include "core/tuner.h"

struct core_config {
    int32_t set;      /* number of the process set */
    int rank, size;   /* in the set */
    const int *ranks; /* the global ranks of the members; borrowed for the life of the core */
    int world_size;
    size_t capacity;           /* of the cache; 0: none */
    size_t threshold;          /* bytes of a fused operation; 0: nothing is fused */
    int64_t cycle_ns;          /* how long a submission may wait for others */
    int64_t warn_ns;           /* a tensor that waits longer is stalled; 0: never */
    int64_t give_up_ns;        /* the set ends if a tensor waits longer; 0: never */
    int64_t silence_ns;        /* a rank that is silent for longer is lost; 0: never */
    struct tuner_setup tuner;  /* of the threshold and the cycle time */
    const struct trace *trace; /* may be NULL */
};

/* A known group may wait longer for its last tensor, because it always came so far. */
enum { HOLD_CYCLES = 10 };

static inline struct message_limits config_limits(const struct core_config *config)
{
    return (struct message_limits){config->capacity, (size_t)config->world_size};
}
