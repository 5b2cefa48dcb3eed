/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which rank do the others of a job that hangs wait for? Pure. The strongest evidence counts:
 *
 * 0. Somebody has stopped or frozen ranks, or they are out of memory in their cgroup.
 * 1. NCCL knows how many operations each rank has launched (RAS), and a few ranks are behind.
 * 2. libhvd or Horovod says that an operation waits for ranks.
 * 3. PyTorch's watchdog has written the number of the last collective of each rank, and a few ranks
 *    are behind.
 * 4. A few ranks are at another place of the program than most, or in another system call.
 * 5. Of two ranks, one waits in a call of torch.distributed. The other one sleeps, or waits for a
 *    file, in code of its own.
 * 6. A few ranks wait and most spin, or the reverse.
 * 7. A few ranks have ended well, and the others have not.
 * 8. One rank wrote its last line long before all others.
 *
 * A few: one, or a quarter at most, of three or more; most: more than a half. Otherwise no rank
 * stands out. Ranks at an unknown place do not count among the few, but among all.
 */
#pragma once

#include "base/buf.h"
#include "features/hang/hang.h"
#include "features/hang/places.h"

#define CULPRIT_SILENCE_NS (INT64_C(10) * 1000000000)

struct culprit_rank {
    int rank;
    const char *host;           /* NULL: it is not to be said */
    struct program_place place; /* as places_of() */
    bool asleep;                /* it has not run since it is quiet, and the job has two ranks */
    enum hang_way way;          /* HANG_MOVES: unknown */
    int64_t launched;           /* of `operation`, by NCCL's RAS; -1: it does not say */
    const char *operation;      /* "allreduces"; the same for all ranks */
    int64_t enqueued;           /* by PyTorch's watchdog; -1: it does not say */
    int64_t last_ns;            /* when its last output came; 0: never */
};

struct culprit_stall {
    const char *text;   /* "ranks 0-2 wait for rank 3 in allreduce 'x', for 60 s" */
    const int *missing; /* ascending */
    int count;
};

/* Ranks that have ended with status 0, ascending. */
struct culprit_ended {
    const int *ranks;
    int count;
    const char *host; /* of the first */
};

enum culprit_kind {
    CULPRIT_NONE,
    CULPRIT_HELD,
    CULPRIT_LAUNCHED,
    CULPRIT_STALL,
    CULPRIT_BEHIND,
    CULPRIT_PLACE,
    CULPRIT_ABSENT,
    CULPRIT_WAY,
    CULPRIT_ENDED,
    CULPRIT_SILENT,
};

struct culprit {
    enum culprit_kind kind;
    int rank; /* the first one that stands out; -1: none does, or they are on several hosts */
};

/* The ranks are those that run; it sorts them. `stall` is NULL if libhvd reports nothing, and
 * `ended` if no rank has ended. Appends a part of a sentence without its end, and always something.
 */
struct culprit culprit_find(struct culprit_rank *ranks, int count,
                            const struct culprit_stall *stall, const struct culprit_ended *ended,
                            struct buf *out);
