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
 *   end is known, so a peer's error may be 0.1 s older than the exit. The peers do not name another
 *   rank. There was no other end that may be the cause. That is one without a word, which began at
 *   the time of the first exit, or up to 0.1 s later. It may also be a consequence. Nor did a rank
 *   write an error of its own up to 0.1 s after that of the first exit.
 * - CRASH: no rank wrote an error of its own, and one crashed or was killed from outside, up to
 *   0.1 s after the first exit. An agent may see an end late. If there are several, the first one
 *   counts.
 * - LEFT: none of these. A rank that ends with sys.exit() shuts its library down first, so that
 *   its peers fail and exit before it. It is the rank that all peers name that name one. It has
 *   blamed no peer itself. No other rank of its app has failed on its own without a word, up to
 *   0.1 s after the first exit. None wrote an error of its own up to 0.1 s after the blame. If they
 *   name none, it is the only rank of its app that has not blamed a peer. It must have exited with
 *   a code other than 0, and not because of hvdrun. Each peer that is blamed must be a rank for
 *   sure. If a rank says that a peer has shut its library down in good order, any end will do, or
 *   none.
 * - The peer's error must be recent: LOST within a minute after the error, or 5 s after the early
 *   exit. A TIMEOUT comes as late as the library's time-out says, so there the limit is 35 minutes.
 * - Ends of ranks that hvdrun had begun to end do not count, nor do those of an earlier epoch.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/exit/record.h"
#include "model/exit/symptom.h"

struct root_cause_rank {
    bool took_part;         /* in the epoch of the first exit */
    int rank;               /* in that epoch */
    int node, app;          /* ranks of one node share a clock */
    int64_t uncertainty_ns; /* of that clock */
    bool ended, clean;      /* clean: exit code 0 */
    bool finished;          /* ended, with all of its output */
    bool may_follow;        /* it ended with an exit code, SIGABRT or MPI_Abort */
    bool killed;            /* by SIGKILL */
    bool ended_by_us;       /* hvdrun had begun to end it before */
    int64_t ended_ns;
    int64_t ending_ns;       /* since when it is known to end, for example `ended_ns` */
    const struct tail *tail; /* borrowed; NULL: it wrote nothing */
};

enum root_cause_kind {
    ROOT_CAUSE_NONE,    /* the first exit is not a consequence, as far as one can tell */
    ROOT_CAUSE_UNKNOWN, /* it is one, and one cannot tell of what */
    ROOT_CAUSE_ERROR,   /* the rank wrote an error before the first exit */
    ROOT_CAUSE_EARLY_EXIT,
    ROOT_CAUSE_CRASH,
    ROOT_CAUSE_LEFT, /* it shut its library down, and its peers exited first */
};

struct root_cause {
    enum root_cause_kind kind;
    int seat;
    struct symptom symptom; /* ERROR: what it wrote. UNKNOWN: what the first rank wrote */
    bool left;              /* LEFT: a peer says that a rank has shut its library down */
    int tied;               /* UNKNOWN: it exited with 0 at the same time; below 0: none, or many */
    int early; /* UNKNOWN: its exit with 0 before may be the cause; below 0: none, or many */
};

/* This rank has failed, and says that another one has gone. All that have finished say so, too, and
 * none that runs has written an error of its own: the cause is still to come. */
bool root_cause_comes(const struct root_cause_rank *ranks, int count, int first);

/* A rank that has ended did not do so because of a peer. If it has finished, its output counts. */
bool root_cause_came(const struct root_cause_rank *rank);

/* The failure of this rank most likely followed from the loss of a node. The rank blames a peer,
 * and not surely before the loss. Or it was on that node, and was killed half a second before the
 * last sign of life of the agent at most. */
bool root_cause_follows(const struct root_cause_rank *rank, int node, const struct exit_loss *loss);

/* `first` is the seat of the first exit. Linear in the ranks, and reads their tails. */
void root_cause_find(const struct root_cause_rank *ranks, int count, int first,
                     struct root_cause *out);
