/* SPDX-License-Identifier: Apache-2.0 */
/* What NVIDIA's library knows of a GPU after a failure: memory errors, rows that were replaced, why
 * its clocks are low, its temperature. A value that the library does not give is absent, and never
 * 0. */
#pragma once

#include <stdbool.h>

#include "node/nvml.h"

#define GPU_ECC_UNKNOWN UINT64_MAX

struct gpu_health {
    unsigned index;         /* in the order of PCI addresses, not that of CUDA */
    char uuid[96], pci[32]; /* "": not known */
    bool has_temperature, has_reasons, has_ecc, has_rows;
    unsigned celsius;
    uint64_t reasons;                                /* model/explain/clock_reasons.h */
    uint64_t ecc[NVML_ECC_TYPES][NVML_ECC_COUNTERS]; /* with has_ecc, at least one is known */
    unsigned rows_corrected, rows_uncorrected;       /* replaced because of such errors */
    bool rows_pending, rows_failed;
    int trouble; /* NVML_GPU_IS_LOST, NVML_RESET_REQUIRED; 0: none is known */
};

void gpu_health_read(const struct nvml *nvml, unsigned index, struct gpu_health *out);
