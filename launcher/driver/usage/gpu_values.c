/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/usage/gpu_values.h"

#include <math.h>
#include <stdio.h>

#include "model/explain/gpu_words.h"

static double value(bool known, uint64_t number, double divisor)
{
    return known ? (double)number / divisor : NAN;
}

void gpu_values_read(const Hvdrun__GpuUsage *message, struct gpu_values *out)
{
    *out = (struct gpu_values){
        .index = message->index,
        .use_percent = value(message->has_use, message->use_percent, 1),
        .memory_use_percent = value(message->has_use, message->memory_use_percent, 1),
        .power_w = value(message->has_power, message->power_mw, 1000),
        .energy_j = value(message->has_energy, message->energy_mj, 1000),
        .memory_bytes = value(message->has_memory, message->memory_bytes, 1),
        .memory_used_bytes = value(message->has_memory, message->memory_used_bytes, 1),
        .trouble = gpu_trouble_text((int)message->trouble)};
    snprintf(out->uuid, sizeof(out->uuid), "%s", message->uuid);
}

/* A sum that lacks a part is not known. */
struct rank_gpus rank_gpus_of(const Hvdrun__RankUsage *message, const struct gpu_values *gpus,
                              size_t count)
{
    struct rank_gpus sum = {.count = 0};
    for (size_t i = 0; i < message->n_gpus; i++) {
        if (message->gpus[i] >= count)
            continue;
        const struct gpu_values *gpu = &gpus[message->gpus[i]];
        sum.count++;
        sum.use_percent += gpu->use_percent;
        sum.power_w += gpu->power_w;
        sum.energy_j += gpu->energy_j;
    }
    if (sum.count > 0)
        sum.use_percent /= sum.count;
    sum.memory_bytes = value(message->has_gpu_memory, message->gpu_memory_bytes, 1);
    return sum;
}
