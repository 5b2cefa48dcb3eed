/* SPDX-License-Identifier: Apache-2.0 */
#include "node/nvml.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static void *open_library(struct error *err)
{
    void *library = dlopen(NVML_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (library != NULL)
        return library;
    const char *why = dlerror();
    error_set(err, "there is no driver of NVIDIA (%s)", why != NULL ? why : NVML_LIBRARY);
    return dlopen(NVML_LIBRARY_WSL, RTLD_NOW | RTLD_LOCAL);
}

static void find_function(void *library, const char *symbol, void *member)
{
    void *found = dlsym(library, symbol);
    memcpy(member, &found, sizeof(found));
}

int nvml_load(struct nvml *nvml, struct error *err)
{
    *nvml = (struct nvml){.library = open_library(err)};
    if (nvml->library == NULL)
        return -1;
#define FIND(member, symbol, parameters) \
    find_function(nvml->library, #symbol, (void *)&nvml->member);
    NVML_FUNCTION_LIST(FIND)
#undef FIND
    if (nvml->start == NULL || nvml->count == NULL || nvml->device == NULL)
        return error_set(err, "%s is too old", NVML_LIBRARY);
    return 0;
}

int nvml_start(const struct nvml *nvml, struct error *err)
{
    int result = nvml->start();
    return result == NVML_SUCCESS
               ? 0
               : error_set(err, "%s does not start: error %d", NVML_LIBRARY, result);
}

int nvml_open(struct nvml *nvml, struct error *err)
{
    return nvml_load(nvml, err) < 0 ? -1 : nvml_start(nvml, err);
}

/* Usage and health. */

unsigned gpu_usage_count(const struct nvml *nvml)
{
    unsigned count = 0;
    if (nvml->count(&count) != NVML_SUCCESS)
        return 0;
    return count < GPUS_MAX ? count : GPUS_MAX;
}

/* Did the call give a value? */
static bool took(int *trouble, int result)
{
    if (result == NVML_GPU_IS_LOST || result == NVML_RESET_REQUIRED)
        *trouble = result;
    return result == NVML_SUCCESS;
}

/* What a function of the library returns, which may lack it. */
#define CALL(nvml, function, ...) \
    ((nvml)->function == NULL ? NVML_FUNCTION_NOT_FOUND : (nvml)->function(__VA_ARGS__))

/* Empty, if the library does not give it. */
static void read_text(int (*function)(void *device, char *text, unsigned size), void *device,
                      char *out, unsigned size, int *trouble)
{
    if (function == NULL || !took(trouble, function(device, out, size)))
        out[0] = '\0';
    out[size - 1] = '\0';
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
    if (took(&out->trouble, result) && count <= GPU_PROCESSES_MAX)
        out->process_count = count;
}

void gpu_usage_read(const struct nvml *nvml, unsigned index, bool energy, struct gpu_usage *out)
{
    void *device = NULL;
    *out = (struct gpu_usage){.index = index};
    if (!took(&out->trouble, nvml->device(index, &device)))
        return;
    read_text(nvml->uuid, device, out->uuid, sizeof(out->uuid), &out->trouble);
    out->has_use = took(&out->trouble, CALL(nvml, utilization, device, &out->use));
    out->has_power = took(&out->trouble, CALL(nvml, power, device, &out->power_mw));
    out->has_memory = took(&out->trouble, CALL(nvml, memory, device, &out->memory));
    out->has_energy = energy && took(&out->trouble, CALL(nvml, energy, device, &out->energy_mj));
    read_processes(nvml, device, out);
}

static void read_ecc(const struct nvml *nvml, void *device, struct gpu_health *out)
{
    for (int type = 0; type < NVML_ECC_TYPES; type++) {
        for (int counter = 0; counter < NVML_ECC_COUNTERS; counter++) {
            uint64_t count = 0;
            bool known = took(&out->trouble, CALL(nvml, ecc_errors, device, type, counter, &count));
            out->ecc[type][counter] = known ? count : GPU_ECC_UNKNOWN;
            out->has_ecc = out->has_ecc || known;
        }
    }
}

static void read_rows(const struct nvml *nvml, void *device, struct gpu_health *out)
{
    unsigned pending = 0, failed = 0;
    out->has_rows = took(&out->trouble, CALL(nvml, remapped_rows, device, &out->rows_corrected,
                                             &out->rows_uncorrected, &pending, &failed));
    out->rows_pending = pending != 0;
    out->rows_failed = failed != 0;
}

static void read_links(const struct nvml *nvml, void *device, struct gpu_health *out)
{
    for (unsigned i = 0; i < NVML_LINKS_MAX; i++) {
        int is_up = 0;
        bool known = took(&out->trouble, CALL(nvml, link, device, i, &is_up));
        out->links += known;
        out->links_up += known && is_up != 0;
    }
}

void gpu_health_read(const struct nvml *nvml, unsigned index, struct gpu_health *out)
{
    void *device = NULL;
    *out = (struct gpu_health){.index = index};
    if (!took(&out->trouble, nvml->device(index, &device)))
        return;
    struct nvml_pci pci = {.domain = 0};
    read_text(nvml->name, device, out->name, sizeof(out->name), &out->trouble);
    read_text(nvml->uuid, device, out->uuid, sizeof(out->uuid), &out->trouble);
    if (took(&out->trouble, CALL(nvml, pci, device, &pci)))
        snprintf(out->pci, sizeof(out->pci), "%.*s", (int)sizeof(pci.text) - 1, pci.text);
    out->has_temperature =
        took(&out->trouble, CALL(nvml, temperature, device, NVML_SENSOR_GPU, &out->celsius));
    /* The function has two names, and the newer one can be there without an answer. */
    out->has_reasons = took(&out->trouble, CALL(nvml, reasons, device, &out->reasons)) ||
                       took(&out->trouble, CALL(nvml, reasons_old, device, &out->reasons));
    read_ecc(nvml, device, out);
    read_rows(nvml, device, out);
    read_links(nvml, device, out);
}
