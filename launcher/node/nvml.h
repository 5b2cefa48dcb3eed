/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVIDIA's management library, found at run time: it comes with the driver. The declarations are
 * our own, so the build does not need it.
 *
 * Each function returns one of the results below. A driver may lack any function but the first two.
 * On a GPU that is sick, a call can block for seconds, or for good. So only gpu_sampler.c of the
 * agent calls these, in a process of its own.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define NVML_LIBRARY "libnvidia-ml.so.1"
#define NVML_LIBRARY_WSL "/usr/lib/wsl/lib/" NVML_LIBRARY

enum nvml_result {
    NVML_SUCCESS = 0,
    NVML_NOT_SUPPORTED = 3,
    NVML_INSUFFICIENT_SIZE = 7,
    NVML_FUNCTION_NOT_FOUND = 13,
    NVML_GPU_IS_LOST = 15,
    NVML_RESET_REQUIRED = 16,
};

struct nvml_utilization {
    unsigned gpu, memory; /* percent of the last second or less, in which any kernel ran or any
                             memory was read or written */
};

struct nvml_memory {
    uint64_t total, free, used; /* bytes */
};

struct nvml_pci {
    char legacy[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char text[32]; /* "00000000:3B:00.0" */
};

enum { NVML_ECC_CORRECTED, NVML_ECC_UNCORRECTED, NVML_ECC_TYPES };
enum { NVML_ECC_VOLATILE, NVML_ECC_AGGREGATE, NVML_ECC_COUNTERS }; /* since the driver was loaded */
enum { NVML_SENSOR_GPU };

enum { NVML_LINKS_MAX = 18 }; /* of NVLink */

#define NVML_MEMORY_UNKNOWN UINT64_MAX

struct nvml_process {
    unsigned pid; /* as this process's PID namespace has it; those outside of it are not listed */
    uint64_t memory;                     /* bytes; NVML_MEMORY_UNKNOWN */
    unsigned instance, compute_instance; /* of MIG */
};

/* X(member, symbol, parameters). Devices are void *. */
/* clang-format off */
#define NVML_FUNCTION_LIST(X)                                                                      \
    X(start, nvmlInit_v2, (void))                                                                  \
    X(count, nvmlDeviceGetCount_v2, (unsigned *count))                                             \
    X(device, nvmlDeviceGetHandleByIndex_v2, (unsigned index, void **device))                      \
    X(uuid, nvmlDeviceGetUUID, (void *device, char *text, unsigned size))                          \
    X(name, nvmlDeviceGetName, (void *device, char *text, unsigned size))                          \
    X(utilization, nvmlDeviceGetUtilizationRates, (void *device, struct nvml_utilization *out))    \
    X(power, nvmlDeviceGetPowerUsage, (void *device, unsigned *milliwatts))                        \
    X(memory, nvmlDeviceGetMemoryInfo, (void *device, struct nvml_memory *out))                    \
    X(energy, nvmlDeviceGetTotalEnergyConsumption, (void *device, uint64_t *millijoules))          \
    X(pci, nvmlDeviceGetPciInfo_v3, (void *device, struct nvml_pci *out))                          \
    X(temperature, nvmlDeviceGetTemperature, (void *device, int sensor, unsigned *celsius))        \
    X(reasons, nvmlDeviceGetCurrentClocksEventReasons, (void *device, uint64_t *bits))             \
    X(reasons_old, nvmlDeviceGetCurrentClocksThrottleReasons, (void *device, uint64_t *bits))      \
    X(link, nvmlDeviceGetNvLinkState, (void *device, unsigned link, int *is_up))                   \
    X(ecc_errors, nvmlDeviceGetTotalEccErrors,                                                     \
      (void *device, int type, int counter, uint64_t *count))                                      \
    X(remapped_rows, nvmlDeviceGetRemappedRows,                                                    \
      (void *device, unsigned *corrected, unsigned *uncorrected, unsigned *pending,                \
       unsigned *failed))                                                                          \
    X(processes, nvmlDeviceGetComputeRunningProcesses_v3,                                          \
      (void *device, unsigned *count, struct nvml_process *out))                                   \
    X(processes_v2, nvmlDeviceGetComputeRunningProcesses_v2,                                       \
      (void *device, unsigned *count, struct nvml_process *out))
/* clang-format on */

struct nvml {
    void *library;
#define NVML_MEMBER(member, symbol, parameters) int(*member) parameters; /* NULL: it lacks it */
    NVML_FUNCTION_LIST(NVML_MEMBER)
#undef NVML_MEMBER
};

/* Loads the library, which stays loaded. -1: there is none. */
int nvml_load(struct nvml *nvml, struct error *err);
/* Starts it, which can take seconds. -1: it finds no driver. */
int nvml_start(const struct nvml *nvml, struct error *err);
int nvml_open(struct nvml *nvml, struct error *err); /* both */

/* What a GPU does now, and which processes use it, as NVIDIA's library says it. A value that the
 * library does not give is absent, and never 0. */
#define GPU_PROCESSES_MAX 128
#define GPUS_MAX 64

struct gpu_usage {
    unsigned index; /* in the order of PCI addresses, not that of CUDA */
    char uuid[96];  /* "": not known */
    bool has_use, has_power, has_memory, has_energy;
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

/* What NVIDIA's library knows of a GPU that may be sick: memory errors, rows that were replaced,
 * why its clocks are low, its temperature, its links. A value that the library does not give is
 * absent, and never 0. */
#define GPU_ECC_UNKNOWN UINT64_MAX

struct gpu_health {
    unsigned index;                   /* in the order of PCI addresses, not that of CUDA */
    char uuid[96], pci[32], name[96]; /* "": not known */
    bool has_temperature, has_reasons, has_ecc, has_rows;
    unsigned celsius;
    uint64_t reasons;                                /* model/usage/gpu_words.h */
    uint64_t ecc[NVML_ECC_TYPES][NVML_ECC_COUNTERS]; /* with has_ecc, at least one is known */
    unsigned rows_corrected, rows_uncorrected;       /* replaced because of such errors */
    bool rows_pending, rows_failed;
    unsigned links, links_up; /* of NVLink; 0: it has none, or they are not known */
    int trouble;              /* NVML_GPU_IS_LOST, NVML_RESET_REQUIRED; 0: none is known */
};
void gpu_health_read(const struct nvml *nvml, unsigned index, struct gpu_health *out);
