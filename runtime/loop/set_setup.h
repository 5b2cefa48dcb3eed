/* SPDX-License-Identifier: Apache-2.0 */
/* What a process set is made of. */
#pragma once

#include "core/config.h"
#include "engine/engine.h"
#include "loop/set_owner.h"

struct set_setup {
    int32_t id;
    const int *ranks;                /* global, ascending; copied */
    int count, world_size, own_rank; /* `own_rank`: global */
    struct core_config knobs;        /* only the knobs and the trace are used */
    const struct engine *engine;
    const char *interface;
    int64_t timeout_ms;
    int stop;                      /* a descriptor: readable when all sets fail */
    bool completes_at_launch;      /* see knobs.h */
    const struct set_owner *owner; /* borrowed */
};
