/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Autotune: finds the threshold and the cycle time with which allreduces move the most bytes in a
 * microsecond. The root of a process set measures and decides, and tells the members.
 *
 * As in Horovod, a *step* is over when some tensor was reduced as often as there were steps. A
 * *sample* is a number of steps, and its score is bytes by microseconds. A *round* is five samples,
 * and its score is their median. The first rounds are discarded. Horovod then chooses points with a
 * Gaussian process; here that is core/search.h, with the threshold and the cycle time as powers of
 * two. The first point has the defaults, so the result is not worse than they are.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "core/search.h"

struct tuner_setup {
    bool on;
    bool threshold_fixed, cycle_fixed; /* what the user has set is not tuned */
    int warm_up;                       /* rounds */
    int steps;                         /* of a sample */
    int points;                        /* at most; at least 1 */
};

struct tune_point {
    size_t threshold;
    int64_t cycle_ns;
};

/* The end of a round. */
struct tuning {
    struct tune_point tried, next;
    double score, best_score; /* of `tried`, and of the best point so far */
    bool settled;             /* `next` is the best point, and the last one */
};

enum { TUNER_SAMPLES = 5 };

struct tuner {
    struct tuner_setup setup;
    struct tune_point now;
    struct search search;
    struct map counts; /* key of a tensor -> how often it was reduced in this sample; owns keys */
    uintptr_t most;    /* the largest of the counts */
    uint64_t bytes;
    int64_t since_ns; /* when the sample began; INT64_MAX: it has not begun */
    double samples[TUNER_SAMPLES];
    int sample_count, rounds;
};

void tuner_init(struct tuner *tuner, const struct tuner_setup *setup,
                const struct tune_point *start);
void tuner_destroy(struct tuner *tuner);

/* An allreduce of this tensor was decided. */
void tuner_count(struct tuner *tuner, const char *key, size_t bytes);

/* After each decision. True: a round is over that counts, and the threshold and the cycle time are
 * those of `tuning->next` from now on. */
bool tuner_turn(struct tuner *tuner, int64_t now_ns, struct tuning *tuning);
