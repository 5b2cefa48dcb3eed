/* SPDX-License-Identifier: Apache-2.0 */
#include "features/metrics/metrics_driver.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "driver/job/job.h"
#include "driver/job/job_kind.h"
#include "driver/tell/status_json.h"
#include "features/metrics/metrics.h"
#include "features/usage/usage_driver.h"

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

/* The metrics of the hosts that are alive, as of the last round of the sampler. A line of a table
 * is a metric. */

static void host_metrics_put(const struct job *job, struct exposition *out)
{
    put_hosts(job, out);
    put_all_pressure(job, out);
    put_gpus(job, out);
}

#define STATES_MAX 32

/* What the families are written from. */
struct writer {
    struct job *job;
    json_t *status; /* as `hvdrun status` has it, for each kind of job */
    struct exposition exposition;
};

static double number_of(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text == NULL ? "" : text;
}

static void put_one(struct writer *writer, const struct exposition_family *family, double value)
{
    exposition_family(&writer->exposition, family);
    exposition_sample(&writer->exposition, NULL, 0, value);
}

/* "not started" becomes not_started: a value that needs no quotes in a query. */
static void put_state(struct writer *writer, const char *state, int value)
{
    char *name AUTO_FREE = mem_strdup(state);
    const struct exposition_label label = {"state", name};
    for (char *at = name; *at != '\0'; at++)
        *at = *at == ' ' ? '_' : *at;
    exposition_sample(&writer->exposition, &label, 1, value);
}

static void put_job(struct writer *writer)
{
    static const struct exposition_family info = {"hvdrun_job", EXPOSITION_INFO, NULL,
                                                  "The job, with its command."},
                                          state = {"hvdrun_job_state", EXPOSITION_GAUGE, NULL,
                                                   "1 for the state of the job, 0 for others."};
    const struct exposition_label labels[] = {
        {"version", HVDRUN_VERSION},
        {"command", text_of(writer->status, "command")},
        {"name", text_of(writer->status, "name")},
    };
    exposition_family(&writer->exposition, &info);
    exposition_sample(&writer->exposition, labels, sizeof(labels) / sizeof(labels[0]), 1);
    exposition_family(&writer->exposition, &state);
    for (int i = 0; i <= JOB_DONE; i++) {
        put_state(writer, job_state_name((enum job_state)i),
                  writer->job->state == (enum job_state)i);
    }
}

static void put_totals(struct writer *writer)
{
    static const struct exposition_family start = {"hvdrun_job_start_time_seconds",
                                                   EXPOSITION_GAUGE, "seconds",
                                                   "When the job started, since 1970."},
                                          size = {"hvdrun_job_size", EXPOSITION_GAUGE, NULL,
                                                  "Ranks of the job."},
                                          epoch = {"hvdrun_job_epoch", EXPOSITION_GAUGE, NULL,
                                                   "Epoch of the job; 1 if it is not elastic."},
                                          recovery = {
                                              "hvdrun_recovery_seconds", EXPOSITION_COUNTER,
                                              "seconds",
                                              "Time from changes and failures until the ranks ran "
                                              "again, of an elastic job."};
    put_one(writer, &start, number_of(writer->status, "started"));
    put_one(writer, &size, number_of(writer->status, "size"));
    put_one(writer, &epoch, writer->job->epoch);
    put_one(writer, &recovery, number_of(writer->status, "recovery_s"));
}

/* How many entries of a list of the status are in each state. */
struct state_counts {
    const char *names[STATES_MAX]; /* borrowed */
    int counts[STATES_MAX];
    size_t count;
};

static void count_state(struct state_counts *counts, const char *name, int more)
{
    size_t at = 0;
    while (at < counts->count && strcmp(counts->names[at], name) != 0)
        at++;
    if (at == STATES_MAX)
        return;
    counts->count = at == counts->count ? at + 1 : counts->count;
    counts->names[at] = name;
    counts->counts[at] += more;
}

/* `usual`: states that are there even if nothing is in them, so that an alert can rely on them. */
static void put_states(struct writer *writer, const struct exposition_family *family,
                       const char *list, const char *const *usual)
{
    const json_t *entries = json_object_get(writer->status, list);
    struct state_counts counts = {.count = 0};
    for (size_t i = 0; usual[i] != NULL; i++)
        count_state(&counts, usual[i], 0);
    for (size_t i = 0; i < json_array_size(entries); i++) {
        const json_t *state = json_object_get(json_array_get(entries, i), "state");
        if (json_is_string(state))
            count_state(&counts, json_string_value(state), 1);
    }
    exposition_family(&writer->exposition, family);
    for (size_t i = 0; i < counts.count; i++) {
        put_state(writer, counts.names[i], counts.counts[i]);
    }
}

static void put_all_states(struct writer *writer)
{
    static const struct exposition_family hosts = {"hvdrun_hosts", EXPOSITION_GAUGE, NULL,
                                                   "Hosts of the job in each state."},
                                          ranks = {"hvdrun_ranks", EXPOSITION_GAUGE, NULL,
                                                   "Ranks of the job in each state."};
    static const char *const usual_hosts[] = {"connecting", "up", "silent", "lost", NULL};
    static const char *const usual_ranks[] = {"not started", "running", "exited", "finished", NULL};
    put_states(writer, &hosts, "hosts", usual_hosts);
    put_states(writer, &ranks, "ranks", usual_ranks);
}

static void put_restarts(struct writer *writer)
{
    static const struct exposition_family family = {
        "hvdrun_restarts", EXPOSITION_COUNTER, NULL,
        "How often the ranks had to start or meet again, by reason."};
    static const char *const reasons[] = {"host_lost", "crash", "preempted", "host_added", "other"};
    const json_t *changes = json_object_get(writer->status, "changes");
    const struct exposition_label requeued = {"reason", "requeued"};
    exposition_family(&writer->exposition, &family);
    exposition_sample(&writer->exposition, &requeued, 1, number_of(writer->status, "restarts"));
    for (size_t i = 0; changes != NULL && i < sizeof(reasons) / sizeof(reasons[0]); i++) {
        const struct exposition_label label = {"reason", reasons[i]};
        double count = number_of(changes, reasons[i]);
        exposition_sample(&writer->exposition, &label, 1, isnan(count) ? 0 : count);
    }
}

void metrics_text(struct job *job, enum exposition_format format, struct buf *out)
{
    struct writer writer = {
        .job = job,
        .status = status_json(job),
        .exposition = {.out = out, .format = format, .common = {"job_id", job->request->job_id}}};
    kind_status(job, writer.status);
    put_job(&writer);
    put_totals(&writer);
    put_all_states(&writer);
    put_restarts(&writer);
    host_metrics_put(job, &writer.exposition);
    rank_metrics_put(job, &writer.exposition);
    exposition_end(&writer.exposition);
    json_decref(writer.status);
}
