/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/usage/usage_marks.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "model/usage/outliers.h"

#define MIB (1024.0 * 1024)

/* When a value differs. Ranks may read and write what they like: it is usual that rank 0 alone
 * writes. */
static const struct rule {
    const char *key;
    struct outlier_rule rule;
} rules[] = {
    {"cpus", {.floor = 0.2, .share = 0.5}},
    {"resident_bytes", {.floor = 256 * MIB, .share = 0.25}},
    {"threads", {.floor = 8, .share = 0.5}},
    {"processes", {.floor = 1, .share = 0.5}},
    {"gpu_use_percent", {.floor = 30, .share = 0.5}},
    {"gpu_power_w", {.floor = 50, .share = 0.25}},
    {"gpu_memory_bytes", {.floor = 1024 * MIB, .share = 0.25}},
    {"last_output_s", {.floor = 30, .share = 1}},
    {"progress", {.floor = 5, .share = 0.1}}, /* percent */
};

#define RULES (sizeof(rules) / sizeof(rules[0]))

double usage_value(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    if (json_is_object(value))
        value = json_object_get(value, "percent");
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static void mark(const json_t *ranks, const struct rule *rule)
{
    size_t count = json_array_size(ranks);
    double *values AUTO_FREE = mem_array(count + 1, sizeof(*values));
    int *found AUTO_FREE = mem_array(count + 1, sizeof(*found));
    for (size_t i = 0; i < count; i++)
        values[i] = usage_value(json_array_get(ranks, i), rule->key);
    outliers_find(values, count, &rule->rule, found);
    for (size_t i = 0; i < count; i++) {
        json_t *marks = json_object_get(json_array_get(ranks, i), "marks");
        if (found[i] != 0)
            json_object_set_new(marks, rule->key, json_string(found[i] < 0 ? "less" : "more"));
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
