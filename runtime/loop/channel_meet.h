/* SPDX-License-Identifier: Apache-2.0 */
/* How the members of a process set find the root, and prove that they belong to the job. */
#pragma once

#include "engine/engine.h"

/* What a channel is made for. */
struct channel_setup {
    const struct engine *engine;
    struct engine_comm *comm;
    int rank, size;        /* in the set */
    const int *ranks;      /* the members' global ranks, for errors */
    const char *interface; /* the root's addresses are those of it; NULL: of all */
    int64_t timeout_ms;    /* for all that the opening waits for */
    int stop;              /* a descriptor: when it is readable, the opening fails at once */
};

/* Fills `fds`: at the root one for each other set rank, in their order; elsewhere one, to the root.
 * They are not blocking. On failure, all are closed. */
enum hvd_status meet(const struct channel_setup *setup, int *fds, struct error *err);
