/* SPDX-License-Identifier: Apache-2.0 */
/* What a channel is made for: the same for its root and its members. */
#pragma once

#include "engine/engine.h"

struct channel_setup {
    const struct engine *engine;
    struct engine_comm *comm;
    int rank, size;        /* in the set */
    const int *ranks;      /* the members' global ranks, for errors */
    const char *interface; /* the root's addresses are those of it; NULL: of all */
    int64_t timeout_ms;    /* for all that the opening waits for */
    int stop;              /* a descriptor: when it is readable, the opening fails at once */
};
