/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does a job hang? Pure: facts about its ranks and the time come in, the verdict goes out.
 *
 * A rank is *quiet* in the time between two samples, unless one of these shows progress:
 * - it has written output, its library has completed an operation, or it has reported progress,
 * - it has read or written files or pipes, touched new memory, or got data for which it waited,
 * - it has used the processor, and meanwhile often waited for something: it works,
 * - its GPUs have read or written their memory, or their power has changed. Their use does not
 *   count: a kernel that waits uses a GPU all the time, at a power that stays the same.
 * hang_rank.h says how the numbers are judged.
 *
 * All others wait, or only use the processor. Such a rank may compute, or spin in a loop that waits
 * for another rank. It counts as quiet if it stays at one place: HANG_LOOKS looks at its stacks
 * must show the same. A rank whose stacks cannot be read shows progress.
 *
 * A stuck job may have a logger or a progress bar. What a helper thread writes does not count if
 * the main threads of its rank sleep at one place, and no rank uses the processor. Ranks that
 * hardly use the processor show progress if at least a half of them go on to another place. So one
 * rank that tries the same again and again shows none.
 *
 * A job hangs when all ranks that run have been quiet for the limit. When a rank ends or is lost,
 * the silence of the others begins anew: they may have waited for it. What a rank does between two
 * samples that are far apart is unknown, so it counts as progress: its host may stand still. After
 * a warning or the verdict, it is neither progress nor silence, unless the numbers have grown.
 * The time in which a debugger
 * holds a rank, or in which nobody reads its output, is not a part of its silence. A job that has
 * not done anything yet does not hang.
 *
 * A job also hangs when an expectation (expect.h) is not met, whatever its ranks do. Such a time
 * counts only up to the last moment for which every rank has a sample, since a line may be on its
 * way. It begins again when a sample comes long after the one before it, or when a debugger lets
 * go.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "features/hang/expect.h"
#include "features/hang/hang_rank.h"

#define HANG_PERIODS 40 /* samples within a limit */
#define HANG_PERIOD_MIN_MS 100
#define HANG_PERIOD_MAX_MS 30000
#define HANG_FRESH_MS 20000

struct hang_limits {
    int64_t warning_ms, hang_ms; /* 0: never */
};

enum hang_news {
    HANG_NOTHING,
    HANG_LOOK,    /* hang_looked() is wanted for every rank */
    HANG_WARNING, /* quiet for warning_ms; once */
    HANG_FOUND,   /* quiet for hang_ms, or an expectation is not met: hang_unmet(); once */
    HANG_PASSED,  /* after one of these, it shows progress again; once */
};

enum hang_way { HANG_MOVES, HANG_WAITS, HANG_SPINS };

struct hang;

/* `expects`: borrowed until the end; NULL: none. */
struct hang *hang_create(const struct hang_limits *limits, struct expects *expects);
void hang_destroy(struct hang *hang);            /* accepts NULL */
int64_t hang_period_ms(const struct hang *hang); /* between two samples */
/* Does a sample at `now` use what GPUs or NCCL said at `said` (0: never)? It may be up to 20 s old,
 * or as old as the question of the sample before, `asked`, since periods may be longer. */
bool hang_sign_is_fresh(int64_t now_ms, int64_t said_ms, int64_t asked_ms);

/* Which worker runs there; 0: none. Each worker of a seat has a number of its own. */
void hang_seat(struct hang *hang, int seat, uint64_t worker);
void hang_sample(struct hang *hang, int seat, const struct hang_sample *sample, int64_t now_ms);
void hang_looked(struct hang *hang, int seat, const struct hang_look *look);
/* A look could not show it. There is no news of its silence before one that does. */
void hang_missed(struct hang *hang, int seat);

/* Has the job been quiet for so long that what costs more should be sampled too? That is the GPUs
 * and the operations of NCCL. Also after the verdict, until the job shows progress again. */
bool hang_wants_more(const struct hang *hang, int64_t now_ms);

enum hang_news hang_tick(struct hang *hang, int64_t now_ms);
/* The expectation for which the last verdict was; -1: it was for the silence of the ranks. */
int hang_unmet(const struct hang *hang);
int64_t hang_quiet_ms(const struct hang *hang,
                      int64_t now_ms); /* for how long all ranks have been quiet */
/* It is quiet, and its main threads have not run meanwhile. false: or that is unknown. */
bool hang_sleeps(const struct hang *hang, int seat);
enum hang_way hang_way(const struct hang *hang, int seat); /* how it spends the quiet time */
