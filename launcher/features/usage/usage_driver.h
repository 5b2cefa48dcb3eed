/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What ranks and hosts use, asked for from the agents. The first question creates the table. While
 * nobody asks, nothing is measured and nothing is sent.
 *
 * Clients that ask at about the same time share a question (job/ask.h), so that many of them cost
 * no more than one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver/job/ask.h"
#include "driver/job/job.h"
#include "wire/control.pb-c.h"

/* sampler_driver.c: asks for the values, and keeps the last ones. */

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

#define SAMPLER_LIMIT_MS 1000

struct rank_sample {
    int64_t when_ns; /* the driver's monotonic clock; 0: none */
    uint64_t cpu_us, resident_bytes, read_bytes, written_bytes;
    uint32_t threads, processes;
    bool has_io;
    struct rank_gpus gpus;
};

struct rank_usage {
    pid_t pid;                       /* of the worker that it is about */
    struct rank_sample last, before; /* for what it uses now, the difference */
};

struct host_sample {
    int64_t when_ns; /* 0: none */
    bool has_load;
    double load;
    uint64_t memory_bytes, memory_available_bytes; /* 0: not known */
    struct host_pressure {
        bool known;
        double some_percent;   /* of the last 10 s */
        double some_s, full_s; /* since the host started */
    } cpu, memory, io;
    struct gpu_values *gpus;
    size_t gpu_count;
};

struct sampler;

/* Asks for new values, as ask_all() does. ask_forget(), ask_is_open() and ask_age_ms() work. */
bool sampler_ask(struct sampler *sampler, ask_done *done, void *context);

/* NULL: nothing is known about it. Borrowed until the next call from the loop. */
const struct rank_usage *sampler_rank(const struct sampler *sampler, int seat);
const struct host_sample *sampler_host(const struct sampler *sampler, int node);

/* How many CPUs the rank has used between its last two samples, where 1 is one CPU. -1: not known.
 */
double rank_usage_cpus(const struct rank_usage *usage);

/*
 * usage_json_driver.c: what a job uses, for `hvdrun top`:
 *
 *   {"protocol": N, "job": ID, "state": TEXT, "size": N (ranks), "up_s": SECONDS,
 *    "sampled_s": SECONDS (age of the values; no key: there are none yet),
 *    "sampling": true if newer values are on their way,
 *    "hosts": [{"host": NAME, "load": N, "memory_bytes": N, "memory_available_bytes": N,
 *               "pressure": {"cpu": PERCENT, "memory": PERCENT, "io": PERCENT},
 *               "gpus": [{"index": N, "uuid": TEXT, "use_percent": N, "memory_use_percent": N,
 *                         "power_w": N, "energy_j": N, "memory_bytes": N,
 *                         "memory_used_bytes": N, "trouble": TEXT}, ...]}, ...],
 *    "ranks": [{"rank": N, "host": NAME, "pid": N, "up_s": SECONDS, "cpus": N, "cpu_s": SECONDS,
 *               "resident_bytes": N, "threads": N, "processes": N, "read_bytes": N,
 *               "written_bytes": N, "last_output_s": SECONDS,
 *               "gpus": N, "gpu_use_percent": N, "gpu_power_w": N, "gpu_energy_j": N,
 *               "gpu_memory_bytes": N,
 *               "progress": {...} (tell/json_text.h; no key: it reports none)}, ...]}
 *
 * "ranks" has those that run. A value that is not known has no key. Pressure is how much of the
 * last 10 s some task waited. CPUs are between the last two samples, and 1 is one CPU. A rank whose
 * processes use no GPU has no key of a GPU. The energy is since the driver was loaded.
 */
struct json_t;

/* Also asks for new values. The caller's. */
struct json_t *usage_json(struct job *job);

/* At the end of the job: "hosts" and "ranks" with the last values, those of ranks that have ended
 * included. The caller's. */
struct json_t *usage_json_last(const struct job *job);
