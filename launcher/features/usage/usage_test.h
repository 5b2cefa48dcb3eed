/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of this folder need, and nobody else. */
#pragma once

#include <jansson.h>

#include "base/buf.h"
#include "wire/control.pb-c.h"

/* sampler_driver.c */
struct gpu_values;
struct rank_gpus;
void gpu_values_read(const Hvdrun__GpuUsage *message, struct gpu_values *out);
struct rank_gpus rank_gpus_of(const Hvdrun__RankUsage *message, const struct gpu_values *gpus,
                              size_t count);

/* top_cli.c: text for a terminal. usage_marks_set() comes first (usage_marks.h). */
void control_usage_text(const json_t *usage, struct buf *out);

/* The orders that a user can choose, one after the other, and then the first one again. */
const char *control_usage_order_name(size_t order);
void control_usage_sort(json_t *usage, size_t order);
