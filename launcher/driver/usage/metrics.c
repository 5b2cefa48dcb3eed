/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/usage/metrics.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "driver/job/job_kind.h"
#include "driver/tell/rank_progress.h"
#include "driver/tell/status_json.h"
#include "driver/usage/sampler.h"

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

static void put_one(struct writer *writer, const struct exposition_family *family, double value)
{
    exposition_family(&writer->exposition, family);
    exposition_sample(&writer->exposition, NULL, 0, value);
}

static void put_job(struct writer *writer)
{
    static const struct exposition_family info = {"hvdrun_job", EXPOSITION_INFO, NULL,
                                                  "The job, with the version of hvdrun."},
                                          state = {"hvdrun_job_state", EXPOSITION_GAUGE, NULL,
                                                   "1 for the state of the job, 0 for others."};
    const struct exposition_label version = {"version", HVDRUN_VERSION};
    exposition_family(&writer->exposition, &info);
    exposition_sample(&writer->exposition, &version, 1, 1);
    exposition_family(&writer->exposition, &state);
    for (int i = 0; i <= JOB_DONE; i++) {
        const struct exposition_label label = {"state", job_state_name((enum job_state)i)};
        exposition_sample(&writer->exposition, &label, 1, writer->job->state == (enum job_state)i);
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
        const struct exposition_label label = {"state", counts.names[i]};
        exposition_sample(&writer->exposition, &label, 1, counts.counts[i]);
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

/* Hosts: a family of one of these, with a label for the resource if `resource` is not NULL. */
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

static const struct host_sample *sample_of(const struct writer *writer, int node)
{
    bool alive = node_link_alive(writer->job->nodes[node]);
    return alive ? sampler_host(writer->job->sampler, node) : NULL;
}

static void put_hosts(struct writer *writer)
{
    for (size_t i = 0; i < sizeof(host_metrics) / sizeof(host_metrics[0]); i++) {
        exposition_family(&writer->exposition, &host_metrics[i].family);
        for (int node = 0; node < writer->job->node_count; node++) {
            const struct host_sample *host = sample_of(writer, node);
            const struct exposition_label label = {"host", writer->job->nodes[node]->host};
            if (host != NULL)
                exposition_sample(&writer->exposition, &label, 1, host_metrics[i].value(host));
        }
    }
}

static void put_pressure(struct writer *writer, const struct exposition_family *family, bool full)
{
    exposition_family(&writer->exposition, family);
    for (int node = 0; node < writer->job->node_count; node++) {
        const struct host_sample *host = sample_of(writer, node);
        if (host == NULL)
            continue;
        const struct {
            const char *name;
            const struct host_pressure *pressure;
        } parts[] = {{"cpu", &host->cpu}, {"memory", &host->memory}, {"io", &host->io}};
        for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
            const struct exposition_label labels[] = {{"host", writer->job->nodes[node]->host},
                                                      {"resource", parts[i].name}};
            const struct host_pressure *pressure = parts[i].pressure;
            if (pressure->known)
                exposition_sample(&writer->exposition, labels, 2,
                                  full ? pressure->full_s : pressure->some_s);
        }
    }
}

static void put_all_pressure(struct writer *writer)
{
    static const struct exposition_family
        some = {"hvdrun_host_pressure_waiting_seconds", EXPOSITION_COUNTER, "seconds",
                "Time in which some task of the host waited for the resource."},
        full = {"hvdrun_host_pressure_stalled_seconds", EXPOSITION_COUNTER, "seconds",
                "Time in which all tasks of the host waited for the resource."};
    put_pressure(writer, &some, false);
    put_pressure(writer, &full, true);
}

/* What is known of a rank. */
struct rank_values {
    const struct rank_record *record;
    const struct rank_usage *usage;         /* NULL: before the first sample */
    const struct progress_report *progress; /* NULL: it reports none */
};

static double cpu_of(const struct rank_values *rank)
{
    return rank->usage == NULL ? NAN : (double)rank->usage->last.cpu_us / 1e6;
}

static double resident_of(const struct rank_values *rank)
{
    return rank->usage == NULL ? NAN : (double)rank->usage->last.resident_bytes;
}

static double threads_of(const struct rank_values *rank)
{
    return rank->usage == NULL ? NAN : (double)rank->usage->last.threads;
}

static double processes_of(const struct rank_values *rank)
{
    return rank->usage == NULL ? NAN : (double)rank->usage->last.processes;
}

static double read_of(const struct rank_values *rank)
{
    return rank->usage == NULL || !rank->usage->last.has_io ? NAN
                                                            : (double)rank->usage->last.read_bytes;
}

static double written_of(const struct rank_values *rank)
{
    return rank->usage == NULL || !rank->usage->last.has_io
               ? NAN
               : (double)rank->usage->last.written_bytes;
}

static double lines_of(const struct rank_values *rank)
{
    return (double)rank->record->output_lines;
}

static double last_output_of(const struct rank_values *rank)
{
    if (rank->record->output_ns == 0)
        return NAN;
    return (double)(clock_wall_ns() - clock_mono_ns() + rank->record->output_ns) / 1e9;
}

static double progress_of(const struct rank_values *rank)
{
    return rank->progress == NULL || rank->progress->progress.percent < 0
               ? NAN
               : rank->progress->progress.percent / 100;
}

static double eta_of(const struct rank_values *rank)
{
    double left_s =
        rank->progress == NULL ? -1 : progress_report_eta_s(rank->progress, clock_mono_ns());
    return left_s < 0 ? NAN : left_s;
}

/* A line for each metric of a rank. */
static const struct rank_metric {
    struct exposition_family family;
    double (*value)(const struct rank_values *rank);
} rank_metrics[] = {
    {{"hvdrun_rank_cpu_seconds", EXPOSITION_COUNTER, "seconds",
      "CPU time of all processes of the rank."},
     cpu_of},
    {{"hvdrun_rank_resident_bytes", EXPOSITION_GAUGE, "bytes",
      "Resident memory of all processes of the rank."},
     resident_of},
    {{"hvdrun_rank_threads", EXPOSITION_GAUGE, NULL, "Threads of the rank."}, threads_of},
    {{"hvdrun_rank_processes", EXPOSITION_GAUGE, NULL, "Processes of the rank."}, processes_of},
    {{"hvdrun_rank_read_bytes", EXPOSITION_COUNTER, "bytes",
      "Bytes that the rank has read from files, pipes and sockets."},
     read_of},
    {{"hvdrun_rank_written_bytes", EXPOSITION_COUNTER, "bytes",
      "Bytes that the rank has written to files, pipes and sockets."},
     written_of},
    {{"hvdrun_rank_output_lines", EXPOSITION_COUNTER, NULL, "Lines that the rank has printed."},
     lines_of},
    {{"hvdrun_rank_last_output_timestamp_seconds", EXPOSITION_GAUGE, "seconds",
      "When the rank last printed something, since 1970."},
     last_output_of},
    {{"hvdrun_rank_progress_ratio", EXPOSITION_GAUGE, "ratio",
      "How far the rank says that it is; 1 is the end."},
     progress_of},
    {{"hvdrun_rank_remaining_seconds", EXPOSITION_GAUGE, "seconds",
      "How long the rank says that it still needs."},
     eta_of},
};

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

static void put_ranks(struct writer *writer)
{
    const struct job *job = writer->job;
    int *seats AUTO_FREE = running_seats(job);
    for (size_t i = 0; i < sizeof(rank_metrics) / sizeof(rank_metrics[0]); i++) {
        exposition_family(&writer->exposition, &rank_metrics[i].family);
        for (int rank = 0; rank < job->ranks.size; rank++) {
            char number[16];
            int seat = seats[rank];
            if (seat < 0)
                continue;
            snprintf(number, sizeof(number), "%d", rank);
            const struct exposition_label labels[] = {{"rank", number},
                                                      {"host", job_seat_host(job, seat)}};
            const struct rank_values values = {&job->ranks.records[seat],
                                               sampler_rank(job->sampler, seat),
                                               rank_progress(job, seat)};
            exposition_sample(&writer->exposition, labels, 2, rank_metrics[i].value(&values));
        }
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
    put_hosts(&writer);
    put_all_pressure(&writer);
    put_ranks(&writer);
    exposition_end(&writer.exposition);
    json_decref(writer.status);
}
