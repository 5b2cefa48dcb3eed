/* SPDX-License-Identifier: Apache-2.0 */
#include "node/gpu_health.h"

#include <stdio.h>
#include <string.h>

/* Did the call give a value? */
static bool took(struct gpu_health *out, int result)
{
    if (nvml_is_trouble(result))
        out->trouble = result;
    return result == NVML_SUCCESS;
}

static void read_names(const struct nvml *nvml, void *device, struct gpu_health *out)
{
    struct nvml_pci pci = {.domain = 0};
    char uuid[sizeof(out->uuid)] = "";
    if (nvml->uuid != NULL && took(out, nvml->uuid(device, uuid, sizeof(uuid))))
        snprintf(out->uuid, sizeof(out->uuid), "%.*s", (int)sizeof(uuid) - 1, uuid);
    if (nvml->pci != NULL && took(out, nvml->pci(device, &pci)))
        snprintf(out->pci, sizeof(out->pci), "%.*s", (int)sizeof(pci.text) - 1, pci.text);
}

/* The function has two names, and the newer one can be there without an answer. */
static void read_reasons(const struct nvml *nvml, void *device, struct gpu_health *out)
{
    if (nvml->reasons != NULL)
        out->has_reasons = took(out, nvml->reasons(device, &out->reasons));
    if (!out->has_reasons && nvml->reasons_old != NULL)
        out->has_reasons = took(out, nvml->reasons_old(device, &out->reasons));
}

static void read_ecc(const struct nvml *nvml, void *device, struct gpu_health *out)
{
    for (int type = 0; type < NVML_ECC_TYPES; type++) {
        for (int counter = 0; counter < NVML_ECC_COUNTERS; counter++) {
            uint64_t count = 0;
            bool known = nvml->ecc_errors != NULL &&
                         took(out, nvml->ecc_errors(device, type, counter, &count));
            out->ecc[type][counter] = known ? count : GPU_ECC_UNKNOWN;
            out->has_ecc = out->has_ecc || known;
        }
    }
}

static void read_rows(const struct nvml *nvml, void *device, struct gpu_health *out)
{
    unsigned pending = 0, failed = 0;
    if (nvml->remapped_rows == NULL)
        return;
    out->has_rows = took(out, nvml->remapped_rows(device, &out->rows_corrected,
                                                  &out->rows_uncorrected, &pending, &failed));
    out->rows_pending = pending != 0;
    out->rows_failed = failed != 0;
}

void gpu_health_read(const struct nvml *nvml, unsigned index, struct gpu_health *out)
{
    void *device = NULL;
    *out = (struct gpu_health){.index = index};
    if (!took(out, nvml->device(index, &device)))
        return;
    read_names(nvml, device, out);
    out->has_temperature = nvml->temperature != NULL &&
                           took(out, nvml->temperature(device, NVML_SENSOR_GPU, &out->celsius));
    read_reasons(nvml, device, out);
    read_ecc(nvml, device, out);
    read_rows(nvml, device, out);
}
