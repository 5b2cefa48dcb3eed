/* SPDX-License-Identifier: Apache-2.0 */
#include "features/metrics/host_metrics_driver.h"

#include <math.h>
#include <stdio.h>

#include "features/usage/sampler_driver.h"

static double load_of(const struct host_sample *host)
{
    return host->has_load ? host->load : NAN;
}

static double memory_of(const struct host_sample *host)
{
    return host->memory_bytes == 0 ? NAN : (double)host->memory_bytes;
}

static double available_of(const struct host_sample *host)
{
    return host->memory_bytes == 0 ? NAN : (double)host->memory_available_bytes;
}

/* A line for each metric of a host, but for pressure. */
static const struct host_metric {
    struct exposition_family family;
    double (*value)(const struct host_sample *host); /* NAN: not known */
} host_metrics[] = {
    {{"hvdrun_host_load1", EXPOSITION_GAUGE, NULL, "Load of the host in the last minute."},
     load_of},
    {{"hvdrun_host_memory_bytes", EXPOSITION_GAUGE, "bytes", "Memory of the host."}, memory_of},
    {{"hvdrun_host_memory_available_bytes", EXPOSITION_GAUGE, "bytes",
      "Memory of the host that programs can still get."},
     available_of},
};

static const struct host_sample *sample_of(const struct job *job, int node)
{
    bool alive = node_link_alive(job->nodes[node]);
    return alive ? sampler_host(job_part(job, sampler), node) : NULL;
}

static void put_hosts(const struct job *job, struct exposition *out)
{
    for (size_t i = 0; i < sizeof(host_metrics) / sizeof(host_metrics[0]); i++) {
        exposition_family(out, &host_metrics[i].family);
        for (int node = 0; node < job->node_count; node++) {
            const struct host_sample *host = sample_of(job, node);
            const struct exposition_label label = {"host", job->nodes[node]->host};
            if (host != NULL)
                exposition_sample(out, &label, 1, host_metrics[i].value(host));
        }
    }
}

static void put_pressure(const struct job *job, struct exposition *out,
                         const struct exposition_family *family, bool full)
{
    exposition_family(out, family);
    for (int node = 0; node < job->node_count; node++) {
        const struct host_sample *host = sample_of(job, node);
        if (host == NULL)
            continue;
        const struct {
            const char *name;
            const struct host_pressure *pressure;
        } parts[] = {{"cpu", &host->cpu}, {"memory", &host->memory}, {"io", &host->io}};
        for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
            const struct exposition_label labels[] = {{"host", job->nodes[node]->host},
                                                      {"resource", parts[i].name}};
            const struct host_pressure *pressure = parts[i].pressure;
            if (pressure->known)
                exposition_sample(out, labels, 2, full ? pressure->full_s : pressure->some_s);
        }
    }
}

static void put_all_pressure(const struct job *job, struct exposition *out)
{
    static const struct exposition_family
        some = {"hvdrun_host_pressure_waiting_seconds", EXPOSITION_COUNTER, "seconds",
                "Time in which some task of the host waited for the resource."},
        full = {"hvdrun_host_pressure_stalled_seconds", EXPOSITION_COUNTER, "seconds",
                "Time in which all tasks of the host waited for the resource."};
    put_pressure(job, out, &some, false);
    put_pressure(job, out, &full, true);
}

static double gpu_use_of(const struct gpu_values *gpu)
{
    return gpu->use_percent / 100;
}

static double gpu_power_of(const struct gpu_values *gpu)
{
    return gpu->power_w;
}

static double gpu_memory_of(const struct gpu_values *gpu)
{
    return gpu->memory_bytes;
}

static double gpu_memory_used_of(const struct gpu_values *gpu)
{
    return gpu->memory_used_bytes;
}

static double gpu_energy_of(const struct gpu_values *gpu)
{
    return gpu->energy_j;
}

static double gpu_lost_of(const struct gpu_values *gpu)
{
    return gpu->trouble != NULL;
}

/* A line for each metric of a GPU. */
static const struct gpu_metric {
    struct exposition_family family;
    double (*value)(const struct gpu_values *gpu); /* NAN: not known */
} gpu_metrics[] = {
    {{"hvdrun_host_gpu_use_ratio", EXPOSITION_GAUGE, "ratio",
      "Time in which some kernel ran on the GPU; it is 1 too while a kernel waits."},
     gpu_use_of},
    {{"hvdrun_host_gpu_power_watts", EXPOSITION_GAUGE, "watts", "Power of the GPU."}, gpu_power_of},
    {{"hvdrun_host_gpu_memory_bytes", EXPOSITION_GAUGE, "bytes", "Memory of the GPU."},
     gpu_memory_of},
    {{"hvdrun_host_gpu_memory_used_bytes", EXPOSITION_GAUGE, "bytes",
      "Memory of the GPU that is in use."},
     gpu_memory_used_of},
    {{"hvdrun_host_gpu_energy_joules", EXPOSITION_COUNTER, "joules",
      "Energy of the GPU since the driver was loaded."},
     gpu_energy_of},
    {{"hvdrun_host_gpu_failed", EXPOSITION_GAUGE, NULL,
      "1: the driver says that the GPU is lost or needs a reset."},
     gpu_lost_of},
};

static void put_gpus_of(const struct job *job, int node, const struct gpu_metric *metric,
                        struct exposition *out)
{
    const struct host_sample *host = sample_of(job, node);
    for (size_t i = 0; host != NULL && i < host->gpu_count; i++) {
        char number[16];
        snprintf(number, sizeof(number), "%u", host->gpus[i].index);
        const struct exposition_label labels[] = {
            {"host", job->nodes[node]->host}, {"gpu", number}, {"uuid", host->gpus[i].uuid}};
        exposition_sample(out, labels, 3, metric->value(&host->gpus[i]));
    }
}

static bool has_gpus(const struct job *job)
{
    bool has = false;
    for (int node = 0; node < job->node_count; node++) {
        const struct host_sample *host = sample_of(job, node);
        has = has || (host != NULL && host->gpu_count > 0);
    }
    return has;
}

static void put_gpus(const struct job *job, struct exposition *out)
{
    for (size_t i = 0; has_gpus(job) && i < sizeof(gpu_metrics) / sizeof(gpu_metrics[0]); i++) {
        exposition_family(out, &gpu_metrics[i].family);
        for (int node = 0; node < job->node_count; node++)
            put_gpus_of(job, node, &gpu_metrics[i], out);
    }
}

void host_metrics_put(const struct job *job, struct exposition *out)
{
    put_hosts(job, out);
    put_all_pressure(job, out);
    put_gpus(job, out);
}
