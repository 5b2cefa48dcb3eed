/* SPDX-License-Identifier: Apache-2.0 */
/* What a GPU does now, and which processes use it, as NVIDIA's library says it. A value that the
 * library does not give is absent, and never 0. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "node/nvml.h"

#define GPU_PROCESSES_MAX 128
#define GPUS_MAX 64

struct gpu_usage {
    unsigned index; /* in the order of PCI addresses, not that of CUDA */
    char uuid[96];  /* "": not known */
    bool has_use, has_power, has_memory, has_energy, has_processes;
    struct nvml_utilization use;
    unsigned power_mw;
    struct nvml_memory memory;
    uint64_t energy_mj; /* since the driver was loaded */
    struct nvml_process processes[GPU_PROCESSES_MAX];
    size_t process_count;
    int trouble; /* NVML_GPU_IS_LOST, NVML_RESET_REQUIRED; 0: none is known */
};

/* At most GPUS_MAX; 0 too when the library fails. */
unsigned gpu_usage_count(const struct nvml *nvml);

/* With `energy`, also the energy, which takes the driver some milliseconds. */
void gpu_usage_read(const struct nvml *nvml, unsigned index, bool energy, struct gpu_usage *out);
