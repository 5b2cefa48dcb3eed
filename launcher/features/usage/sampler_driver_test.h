/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of sampler need, and nobody else. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "features/usage/sampler_driver.h"
#include "wire/control.pb-c.h"

void gpu_values_read(const Hvdrun__GpuUsage *message, struct gpu_values *out);
struct rank_gpus rank_gpus_of(const Hvdrun__RankUsage *message, const struct gpu_values *gpus,
                              size_t count);
