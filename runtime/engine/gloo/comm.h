/* SPDX-License-Identifier: Apache-2.0 */
/* A communicator of the engine gloo. */
#pragma once

#include "engine/engine.h"
#include "engine/gloo/shim.h"

struct engine_comm {
    struct engine_world *world; /* NULL: not in its list */
    struct engine_comm *next;
    struct mesh *mesh;
    int rank, size; /* in the set */
    int64_t timeout_ms;
};
