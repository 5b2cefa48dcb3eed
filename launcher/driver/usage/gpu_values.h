/* SPDX-License-Identifier: Apache-2.0 */
/* What a GPU does, and what the GPUs of a rank do, from the message of an agent. Pure. A value that
 * is not known is NAN. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/control.pb-c.h"

#define GPU_VALUES_MAX 64 /* of a host */

struct gpu_values {
    uint32_t index;            /* as nvidia-smi has it */
    char uuid[64];             /* "": not known */
    double use_percent;        /* of the last second, in which some kernel ran */
    double memory_use_percent; /* in which some memory was read or written */
    double power_w, energy_j;  /* the energy since the driver was loaded */
    double memory_bytes, memory_used_bytes;
    const char *trouble; /* "is lost", "needs a reset"; NULL: none is known */
};

/* The values of all GPUs that the processes of a rank use. Other ranks may use them too. */
struct rank_gpus {
    uint32_t count;     /* 0: none, or that is not known; then no other value is */
    double use_percent; /* the mean */
    double power_w, energy_j;
    double memory_bytes; /* of the processes of this rank */
};

void gpu_values_read(const Hvdrun__GpuUsage *message, struct gpu_values *out);
struct rank_gpus rank_gpus_of(const Hvdrun__RankUsage *message, const struct gpu_values *gpus,
                              size_t count);
