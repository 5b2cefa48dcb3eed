/* SPDX-License-Identifier: Apache-2.0 */
#include "features/metrics/metrics_driver.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "driver/job/job_kind.h"
#include "driver/tell/rank_progress.h"
#include "driver/tell/tell.h"
#include "features/usage/usage_driver.h"

/*
 * The lists of metrics: an id, the family of OpenMetrics, and the value, in which NAN is not known.
 * The first one is that of a host, but for pressure.
 */
/* clang-format off */
#define HOST_METRIC_LIST(X) \
    X(load, "hvdrun_host_load1", GAUGE, NULL, "Load of the host in the last minute.", \
      of->host->has_load ? of->host->load : NAN) \
    X(memory, "hvdrun_host_memory_bytes", GAUGE, "bytes", "Memory of the host.", \
      of->host->memory_bytes == 0 ? NAN : (double)of->host->memory_bytes) \
    X(available, "hvdrun_host_memory_available_bytes", GAUGE, "bytes", \
      "Memory of the host that programs can still get.", \
      of->host->memory_bytes == 0 ? NAN : (double)of->host->memory_available_bytes)

#define GPU_METRIC_LIST(X) \
    X(gpu_use, "hvdrun_host_gpu_use_ratio", GAUGE, "ratio", \
      "Time in which some kernel ran on the GPU; it is 1 too while a kernel waits.", \
      of->gpu->use_percent / 100) \
    X(gpu_power, "hvdrun_host_gpu_power_watts", GAUGE, "watts", "Power of the GPU.", of->gpu->power_w) \
    X(gpu_memory, "hvdrun_host_gpu_memory_bytes", GAUGE, "bytes", "Memory of the GPU.", \
      of->gpu->memory_bytes) \
    X(gpu_memory_used, "hvdrun_host_gpu_memory_used_bytes", GAUGE, "bytes", \
      "Memory of the GPU that is in use.", of->gpu->memory_used_bytes) \
    X(gpu_energy, "hvdrun_host_gpu_energy_joules", COUNTER, "joules", \
      "Energy of the GPU since the driver was loaded.", of->gpu->energy_j) \
    X(gpu_lost, "hvdrun_host_gpu_failed", GAUGE, NULL, \
      "1: the driver says that the GPU is lost or needs a reset.", of->gpu->trouble != NULL)

#define USED(field) (of->usage == NULL ? NAN : (double)of->usage->last.field)
#define MOVED(field) (of->usage == NULL || !of->usage->last.has_io ? NAN : USED(field))
#define ON_GPUS(field) \
    (of->usage == NULL || of->usage->last.gpus.count == 0 ? NAN : of->usage->last.gpus.field)

#define RANK_METRIC_LIST(X) \
    X(cpu, "hvdrun_rank_cpu_seconds", COUNTER, "seconds", \
      "CPU time of all processes of the rank.", USED(cpu_us) / 1e6) \
    X(resident, "hvdrun_rank_resident_bytes", GAUGE, "bytes", \
      "Resident memory of all processes of the rank.", USED(resident_bytes)) \
    X(threads, "hvdrun_rank_threads", GAUGE, NULL, "Threads of the rank.", USED(threads)) \
    X(processes, "hvdrun_rank_processes", GAUGE, NULL, "Processes of the rank.", USED(processes)) \
    X(read, "hvdrun_rank_read_bytes", COUNTER, "bytes", \
      "Bytes that the rank has read from files, pipes and sockets.", MOVED(read_bytes)) \
    X(written, "hvdrun_rank_written_bytes", COUNTER, "bytes", \
      "Bytes that the rank has written to files, pipes and sockets.", MOVED(written_bytes)) \
    X(lines, "hvdrun_rank_output_lines", COUNTER, NULL, "Lines that the rank has printed.", \
      (double)of->record->output_lines) \
    X(last_output, "hvdrun_rank_last_output_timestamp_seconds", GAUGE, "seconds", \
      "When the rank last printed something, since 1970.", output_s(of->record)) \
    X(progress, "hvdrun_rank_progress_ratio", GAUGE, "ratio", \
      "How far the rank says that it is; 1 is the end.", ratio_of(of->progress)) \
    X(eta, "hvdrun_rank_remaining_seconds", GAUGE, "seconds", \
      "How long the rank says that it still needs.", left_s(of->progress)) \
    X(rank_gpu_use, "hvdrun_rank_gpu_use_ratio", GAUGE, "ratio", \
      "Time in which some kernel ran on the GPUs of the rank; it is 1 too while a kernel waits.", \
      ON_GPUS(use_percent) / 100) \
    X(rank_gpu_power, "hvdrun_rank_gpu_power_watts", GAUGE, "watts", \
      "Power of the GPUs of the rank.", ON_GPUS(power_w)) \
    X(rank_gpu_memory, "hvdrun_rank_gpu_memory_bytes", GAUGE, "bytes", \
      "Memory of GPUs that the rank uses.", ON_GPUS(memory_bytes)) \
    X(rank_gpu_energy, "hvdrun_rank_gpu_energy_joules", COUNTER, "joules", \
      "Energy of the GPUs of the rank, since the driver was loaded.", ON_GPUS(energy_j))
/* clang-format on */

/* What values are of: a host, one of its GPUs, or a rank. */
struct source {
    const struct host_sample *host;
    const struct gpu_values *gpu;
    const struct rank_record *record;
    const struct rank_usage *usage;         /* NULL: before the first sample */
    const struct progress_report *progress; /* NULL: it reports none */
};

static double output_s(const struct rank_record *record)
{
    if (record->output_ns == 0)
        return NAN;
    return (double)(clock_wall_ns() - clock_mono_ns() + record->output_ns) / 1e9;
}

static double ratio_of(const struct progress_report *progress)
{
    return progress == NULL || progress->progress.percent < 0 ? NAN
                                                              : progress->progress.percent / 100;
}

static double left_s(const struct progress_report *progress)
{
    double left = progress == NULL ? -1 : progress_report_eta_s(progress, clock_mono_ns());
    return left < 0 ? NAN : left;
}

#define METRIC_VALUE(id, name, type, unit, help, value) \
    static double id##_of(const struct source *of)      \
    {                                                   \
        return value;                                   \
    }
HOST_METRIC_LIST(METRIC_VALUE)
GPU_METRIC_LIST(METRIC_VALUE)
RANK_METRIC_LIST(METRIC_VALUE)

#define METRIC_ROW(id, name, type, unit, help, value) \
    {{name, EXPOSITION_##type, unit, help}, id##_of},

static const struct metric {
    struct exposition_family family;
    double (*value)(const struct source *of);
} host_metrics[] = {HOST_METRIC_LIST(METRIC_ROW)}, gpu_metrics[] = {GPU_METRIC_LIST(METRIC_ROW)},
  rank_metrics[] = {RANK_METRIC_LIST(METRIC_ROW)};

/* Hosts */

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
            const struct source source = {.host = host};
            if (host != NULL)
                exposition_sample(out, &label, 1, host_metrics[i].value(&source));
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

/* GPUs */

static void put_gpus_of(const struct job *job, int node, const struct metric *metric,
                        struct exposition *out)
{
    const struct host_sample *host = sample_of(job, node);
    for (size_t i = 0; host != NULL && i < host->gpu_count; i++) {
        char number[16];
        snprintf(number, sizeof(number), "%u", host->gpus[i].index);
        const struct exposition_label labels[] = {
            {"host", job->nodes[node]->host}, {"gpu", number}, {"uuid", host->gpus[i].uuid}};
        const struct source source = {.gpu = &host->gpus[i]};
        exposition_sample(out, labels, 3, metric->value(&source));
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
    bool wanted = has_gpus(job);
    for (size_t i = 0; wanted && i < sizeof(gpu_metrics) / sizeof(gpu_metrics[0]); i++) {
        exposition_family(out, &gpu_metrics[i].family);
        for (int node = 0; node < job->node_count; node++)
            put_gpus_of(job, node, &gpu_metrics[i], out);
    }
}

/* Ranks */

/* The seat of each rank that runs; -1: none. After a change of an elastic job, a worker that ends
 * and its successor can have the same rank: the later one counts. */
static int *running_seats(const struct job *job)
{
    int *seats = mem_array((size_t)job->ranks.size + 1, sizeof(*seats));
    for (int i = 0; i < job->ranks.size; i++)
        seats[i] = -1;
    for (int seat = 0; seat < job->ranks.size; seat++) {
        const struct rank_record *record = &job->ranks.records[seat];
        if (record->state != RANK_RUNNING || record->rank < 0 || record->rank >= job->ranks.size)
            continue;
        int other = seats[record->rank];
        if (other < 0 || job->ranks.records[other].joined < record->joined)
            seats[record->rank] = seat;
    }
    return seats;
}

static void put_ranks(const struct job *job, struct exposition *out)
{
    int *seats AUTO_FREE = running_seats(job);
    for (size_t i = 0; i < sizeof(rank_metrics) / sizeof(rank_metrics[0]); i++) {
        exposition_family(out, &rank_metrics[i].family);
        for (int rank = 0; rank < job->ranks.size; rank++) {
            char number[16];
            int seat = seats[rank];
            if (seat < 0)
                continue;
            snprintf(number, sizeof(number), "%d", rank);
            const struct exposition_label labels[] = {{"rank", number},
                                                      {"host", job_seat_host(job, seat)}};
            const struct source source = {.record = &job->ranks.records[seat],
                                          .usage = sampler_rank(job_part(job, sampler), seat),
                                          .progress = rank_progress(job, seat)};
            exposition_sample(out, labels, 2, rank_metrics[i].value(&source));
        }
    }
}

/* The job */

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
    const struct {
        struct exposition_family family;
        double value;
    } totals[] = {
        {{"hvdrun_job_start_time_seconds", EXPOSITION_GAUGE, "seconds",
          "When the job started, since 1970."},
         number_of(writer->status, "started")},
        {{"hvdrun_job_size", EXPOSITION_GAUGE, NULL, "Ranks of the job."},
         number_of(writer->status, "size")},
        {{"hvdrun_job_epoch", EXPOSITION_GAUGE, NULL, "Epoch of the job; 1 if it is not elastic."},
         writer->job->epoch},
        {{"hvdrun_recovery_seconds", EXPOSITION_COUNTER, "seconds",
          "Time from changes and failures until the ranks ran again, of an elastic job."},
         number_of(writer->status, "recovery_s")},
    };
    for (size_t i = 0; i < sizeof(totals) / sizeof(totals[0]); i++) {
        exposition_family(&writer->exposition, &totals[i].family);
        exposition_sample(&writer->exposition, NULL, 0, totals[i].value);
    }
}

static void count_state(json_t *counts, const char *name, int more)
{
    json_int_t before = json_integer_value(json_object_get(counts, name));
    json_object_set_new(counts, name, json_integer(before + more));
}

/* How many entries of a list of the status are in each state. `usual`: states that are there even
 * if nothing is in them, so that an alert can rely on them. */
static void put_states(struct writer *writer, const struct exposition_family *family,
                       const char *list, const char *const *usual)
{
    const json_t *entries = json_object_get(writer->status, list);
    json_t *counts = json_object(), *count;
    const char *name;
    for (size_t i = 0; usual[i] != NULL; i++)
        count_state(counts, usual[i], 0);
    for (size_t i = 0; i < json_array_size(entries); i++) {
        const json_t *state = json_object_get(json_array_get(entries, i), "state");
        if (json_is_string(state))
            count_state(counts, json_string_value(state), 1);
    }
    exposition_family(&writer->exposition, family);
    json_object_foreach(counts, name, count)
        put_state(writer, name, (int)json_integer_value(count));
    json_decref(counts);
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
    KIND_TELL(job, status, writer.status);
    put_job(&writer);
    put_totals(&writer);
    put_all_states(&writer);
    put_restarts(&writer);
    put_hosts(job, &writer.exposition);
    put_all_pressure(job, &writer.exposition);
    put_gpus(job, &writer.exposition);
    put_ranks(job, &writer.exposition);
    exposition_end(&writer.exposition);
    json_decref(writer.status);
}
