/* SPDX-License-Identifier: Apache-2.0 */
#include "model/usage/outliers.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

static int by_size(const void *a, const void *b)
{
    double first = *(const double *)a, second = *(const double *)b;
    return (first > second) - (first < second);
}

static double median_of(double *values, size_t count)
{
    qsort(values, count, sizeof(*values), by_size);
    return count % 2 == 1 ? values[count / 2] : values[count / 2 - 1] / 2 + values[count / 2] / 2;
}

/* Returns how many are known. */
static size_t copy_known(const double *values, size_t count, double *out)
{
    size_t known = 0;
    for (size_t i = 0; i < count; i++) {
        if (!isnan(values[i]))
            out[known++] = values[i];
    }
    return known;
}

double outliers_median(const double *values, size_t count)
{
    double *known AUTO_FREE = mem_array(count + 1, sizeof(*known));
    size_t known_count = copy_known(values, count, known);
    return known_count == 0 ? NAN : median_of(known, known_count);
}

void outliers_find(const double *values, size_t count, const struct outlier_rule *rule, int *out)
{
    double *known AUTO_FREE = mem_array(count + 1, sizeof(*known));
    size_t known_count = copy_known(values, count, known);
    for (size_t i = 0; i < count; i++)
        out[i] = 0;
    if (known_count < OUTLIERS_LEAST)
        return;
    double median = median_of(known, known_count);
    for (size_t i = 0; i < known_count; i++)
        known[i] = fabs(known[i] - median);
    double limit = outliers_larger(rule->floor, rule->share * fabs(median));
    limit = outliers_larger(limit, OUTLIER_SPREADS * median_of(known, known_count));
    for (size_t i = 0; i < count; i++) {
        if (fabs(values[i] - median) > limit) /* false for NAN */
            out[i] = values[i] < median ? -1 : 1;
    }
}

void outliers_missing(const double *values, const double *up_s, size_t count, double least_s,
                      bool *out)
{
    size_t running = 0, known = 0;
    for (size_t i = 0; i < count; i++) {
        if (isnan(up_s[i]))
            continue;
        running++;
        known += isnan(values[i]) ? 0 : 1;
    }
    bool most = running >= OUTLIERS_LEAST && 2 * known > running;
    for (size_t i = 0; i < count; i++)
        out[i] = most && isnan(values[i]) && up_s[i] >= least_s;
}
