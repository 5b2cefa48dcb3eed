/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Autotune: finds the threshold and the cycle time with which allreduces move the most bytes in a
 * microsecond. The root of a process set measures and decides, and tells the members.
 *
 * As in Horovod, a *step* is over when some tensor was reduced as often as there were steps. A
 * *sample* is a number of steps, and its score is bytes by microseconds. A *round* is five samples,
 * and its score is their median. The first rounds are discarded. Horovod then chooses points with a
 * Gaussian process; here that is a compass search, with the threshold and the cycle time as powers
 * of two. The first point has the defaults, so the result is not worse than they are.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"

/*
 * Searches for the point with the highest score: a compass search. Points are pairs of small
 * numbers, which the caller takes as exponents.
 *
 * It tries the neighbours of the best point so far, at a distance: those with another first number,
 * then those with another second one. A neighbour that is clearly better becomes the best point,
 * and the search goes on in the same direction. If none is better, the distance is halved. The
 * search ends when no neighbour at distance 1 is better, or after a number of points. Scores are
 * noisy, so an advantage of less than 2 % does not count.
 */
enum { SEARCH_AXES = 2, SEARCH_VALUES_MAX = 16 };

/* The values of one of the two numbers: 0 to `end` - 1. */
struct search_axis {
    int end;      /* at most SEARCH_VALUES_MAX */
    int distance; /* to begin with; 0: this number is fixed */
};

struct search {
    struct search_axis axes[SEARCH_AXES];
    int at[SEARCH_AXES];   /* the point whose score is wanted now */
    int best[SEARCH_AXES]; /* the best point so far */
    double best_score;
    bool tried[SEARCH_VALUES_MAX][SEARCH_VALUES_MAX];
    int direction, failures; /* `failures`: directions in a row that led to nothing better */
    int points_left;
    bool has_score, ended;
};

/* Begins at `start`, and tries at most `points` points, at least one. */
void search_init(struct search *search, const struct search_axis axes[SEARCH_AXES],
                 const int start[SEARCH_AXES], int points);

/* The score of the point `at`. Then `at` is the next point, or the best one if the search has
 * `ended`. */
void search_score(struct search *search, double score);

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
