/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Searches for the point with the highest score: a compass search. Points are pairs of small
 * numbers, which the caller takes as exponents.
 *
 * It tries the neighbours of the best point so far, at a distance: those with another first number,
 * then those with another second one. A neighbour that is clearly better
 * becomes the best point, and the search goes on in the same direction. If none is better, the
 * distance is halved. The search ends when no neighbour at distance 1 is better, or after a number
 * of points. Scores are noisy, so an advantage of less than 2 % does not count.
 */
#pragma once

#include <stdbool.h>

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
