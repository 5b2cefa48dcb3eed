/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rank that most likely made another rank fail (docs/failures.md). Pure; all times are
 * nanoseconds on the driver's monotonic clock.
 *
 * A rank that raises an exception often waits in the shutdown of its communication library. Its
 * peers fail because of it and exit first. The first exit is then a consequence. This code says so
 * only when the case is clear, since a wrong guess is worse than none:
 *
 * - The first exit ended with an exit code, SIGABRT or MPI_Abort, and its stderr blames a peer
 *   (symptom.h). Otherwise it is the cause itself.
 * - ERROR: another rank wrote an error of its own before any rank blamed a peer, and had not failed
 *   by then. If there are several such ranks, the first one counts. It must be first for sure: by
 *   more than the clocks of two hosts may differ, or by 1 ms on one host. Two errors with the same
 *   text are equal.
 * - EARLY_EXIT: no rank wrote an error of its own, and exactly one rank exited with 0 before the
 *   first exit. It is of the same app. The kernel closes the connections of a process before its
 *   end is known, so a peer's error may be 0.1 s older than the exit.
 * - The peer's error must be recent: LOST within a minute after the error, or 5 s after the early
 *   exit. A TIMEOUT comes as late as the library's time-out says, so there the limit is 35 minutes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/exit/symptom.h"

struct root_cause_rank {
    bool took_part;         /* in the epoch of the first exit */
    int node, app;          /* ranks of one node share a clock */
    int64_t uncertainty_ns; /* of that clock */
    bool ended, clean;      /* clean: exit code 0 */
    int64_t ended_ns;
    const struct tail *tail; /* borrowed; NULL: it wrote nothing */
};

enum root_cause_kind {
    ROOT_CAUSE_NONE,  /* the first exit is not a consequence, or one cannot tell of what */
    ROOT_CAUSE_ERROR, /* the rank wrote an error before the first exit */
    ROOT_CAUSE_EARLY_EXIT,
};

struct root_cause {
    enum root_cause_kind kind;
    int seat;
    struct symptom symptom; /* ERROR: what it wrote */
};

/* `first` is the seat of the first exit. Call it only for a rank that ended with an exit code,
 * SIGABRT or MPI_Abort. Linear in the ranks, and reads their tails. */
void root_cause_find(const struct root_cause_rank *ranks, int count, int first,
                     struct root_cause *out);
