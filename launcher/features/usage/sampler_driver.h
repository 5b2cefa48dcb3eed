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
        double some_percent, full_percent; /* of the last 10 s */
        double some_s, full_s;             /* since the host started */
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
