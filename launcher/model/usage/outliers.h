/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which ranks differ from the others. The ranks of a training job do the same work. So the one to
 * look at is the one that uses much less or much more of something. Pure.
 *
 * A value differs if its distance from the median is more than each of these: the floor, a share of
 * the median, and OUTLIER_SPREADS times the spread. The spread is the median distance from the
 * median. So one value of many cannot move what the others are compared with.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define OUTLIER_SPREADS 5
#define OUTLIERS_LEAST 3 /* of fewer values, nobody can say which one differs */

struct outlier_rule {
    double floor; /* in the unit of the values */
    double share; /* of the median */
};

/* Unknown values are NAN, and never differ. Sets out[i] to -1 (much less than the others), 1 (much
 * more) or 0. */
void outliers_find(const double *values, size_t count, const struct outlier_rule *rule, int *out);

/* fmax() would load libm, which costs every job more than it gains. */
static inline double outliers_larger(double one, double other)
{
    return one > other ? one : other;
}

double outliers_median(const double *values, size_t count); /* of the known ones; NAN: none */

/* Which ranks never had a value that more than a half of them have, after `least_s` seconds or
 * more. `values` as above; `up_s`: how long each rank has run; NAN: it does not run. Sets out[i].
 */
void outliers_missing(const double *values, const double *up_s, size_t count, double least_s,
                      bool *out);
