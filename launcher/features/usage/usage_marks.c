/* SPDX-License-Identifier: Apache-2.0 */
#include "features/usage/usage_marks.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/usage/outliers.h"

#define MIB (1024.0 * 1024)

/* When a value differs. Ranks may read and write what they like: it is usual that rank 0 alone
 * writes. */
static const struct rule {
    const char *key;
    struct outlier_rule rule;
    bool expected; /* a rank that never has this value differs from those that have it */
} rules[] = {
    {"cpus", {.floor = 0.2, .share = 0.5}, false},
    {"resident_bytes", {.floor = 256 * MIB, .share = 0.25}, false},
    {"threads", {.floor = 8, .share = 0.5}, false},
    {"processes", {.floor = 1, .share = 0.5}, false},
    {"gpu_use_percent", {.floor = 30, .share = 0.5}, false},
    {"gpu_power_w", {.floor = 50, .share = 0.25}, false},
    {"gpu_memory_bytes", {.floor = 1024 * MIB, .share = 0.25}, false},
    {"last_output_s", {.floor = 30, .share = 1}, true},
    {"progress", {.floor = 5, .share = 0.1}, true}, /* percent */
};

#define EXPECTED_S 10 /* a rank may take this time until it writes something */

#define RULES (sizeof(rules) / sizeof(rules[0]))

double usage_value(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    if (json_is_object(value))
        value = json_object_get(value, "percent");
    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* NAN: it does not run. */
static double up_of(const json_t *rank)
{
    const char *state = json_string_value(json_object_get(rank, "state"));
    return state == NULL || strcmp(state, "running") == 0 ? usage_value(rank, "up_s") : NAN;
}

static void mark(const json_t *ranks, const struct rule *rule)
{
    size_t count = json_array_size(ranks);
    double *values AUTO_FREE = mem_array(count + 1, sizeof(*values));
    double *up_s AUTO_FREE = mem_array(count + 1, sizeof(*up_s));
    int *found AUTO_FREE = mem_array(count + 1, sizeof(*found));
    bool *missing AUTO_FREE = mem_array(count + 1, sizeof(*missing));
    for (size_t i = 0; i < count; i++) {
        values[i] = usage_value(json_array_get(ranks, i), rule->key);
        up_s[i] = up_of(json_array_get(ranks, i));
    }
    outliers_find(values, count, &rule->rule, found);
    if (rule->expected)
        outliers_missing(values, up_s, count, EXPECTED_S, missing);
    for (size_t i = 0; i < count; i++) {
        json_t *marks = json_object_get(json_array_get(ranks, i), "marks");
        if (found[i] != 0)
            json_object_set_new(marks, rule->key, json_string(found[i] < 0 ? "less" : "more"));
        if (missing[i])
            json_object_set_new(marks, rule->key, json_string("none"));
    }
}

/* Ranks with most marks first, then in the order in which they came. */
static void order(json_t *usage, const json_t *ranks)
{
    json_t *sorted = json_array();
    for (size_t marks = RULES + 2; marks-- > 0;) {
        for (size_t i = 0; i < json_array_size(ranks); i++) {
            json_t *rank = json_array_get(ranks, i);
            if (json_object_size(json_object_get(rank, "marks")) == marks)
                json_array_append(sorted, rank);
        }
    }
    json_object_set_new(usage, "ranks", sorted);
}

void usage_marks_set(json_t *usage)
{
    const json_t *ranks = json_object_get(usage, "ranks");
    for (size_t i = 0; i < json_array_size(ranks); i++) {
        json_t *rank = json_array_get(ranks, i), *marks = json_object();
        if (json_is_true(json_object_get(rank, "straggler")))
            json_object_set_new(marks, "straggler", json_string("less"));
        json_object_set_new(rank, "marks", marks);
    }
    for (size_t i = 0; i < RULES; i++)
        mark(ranks, &rules[i]);
    order(usage, ranks);
}
