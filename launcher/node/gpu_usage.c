/* SPDX-License-Identifier: Apache-2.0 */
#include "node/gpu_usage.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

unsigned gpu_usage_count(const struct nvml *nvml)
{
    unsigned count = 0;
    if (nvml->count(&count) != NVML_SUCCESS)
        return 0;
    return count < GPUS_MAX ? count : GPUS_MAX;
}

/* Did the call give a value? */
static bool took(struct gpu_usage *out, int result)
{
    if (nvml_is_trouble(result))
        out->trouble = result;
    return result == NVML_SUCCESS;
}

static void read_uuid(const struct nvml *nvml, void *device, struct gpu_usage *out)
{
    char text[sizeof(out->uuid)] = "";
    if (nvml->uuid == NULL || !took(out, nvml->uuid(device, text, sizeof(text))))
        return;
    memcpy(out->uuid, text, sizeof(text));
    out->uuid[sizeof(text) - 1] = '\0';
}

/* Both functions have the same layout. The list may grow between two calls, so what is too long for
 * the buffer is not known. */
static void read_processes(const struct nvml *nvml, void *device, struct gpu_usage *out)
{
    unsigned count = GPU_PROCESSES_MAX;
    int result = NVML_FUNCTION_NOT_FOUND;
    if (nvml->processes != NULL)
        result = nvml->processes(device, &count, out->processes);
    if (result == NVML_FUNCTION_NOT_FOUND && nvml->processes_v2 != NULL) {
        count = GPU_PROCESSES_MAX;
        result = nvml->processes_v2(device, &count, out->processes);
    }
    out->has_processes = took(out, result) && count <= GPU_PROCESSES_MAX;
    out->process_count = out->has_processes ? count : 0;
}

void gpu_usage_read(const struct nvml *nvml, unsigned index, bool energy, struct gpu_usage *out)
{
    void *device = NULL;
    *out = (struct gpu_usage){.index = index};
    if (!took(out, nvml->device(index, &device)))
        return;
    read_uuid(nvml, device, out);
    out->has_use = nvml->utilization != NULL && took(out, nvml->utilization(device, &out->use));
    out->has_power = nvml->power != NULL && took(out, nvml->power(device, &out->power_mw));
    out->has_memory = nvml->memory != NULL && took(out, nvml->memory(device, &out->memory));
    out->has_energy =
        energy && nvml->energy != NULL && took(out, nvml->energy(device, &out->energy_mj));
    read_processes(nvml, device, out);
}
