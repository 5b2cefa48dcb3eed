/* SPDX-License-Identifier: Apache-2.0 */
#include "features/metrics/metrics_driver.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "driver/tell/rank_progress.h"
#include "features/usage/usage_driver.h"

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

static const struct rank_gpus *gpus_of(const struct rank_values *rank)
{
    return rank->usage == NULL || rank->usage->last.gpus.count == 0 ? NULL
                                                                    : &rank->usage->last.gpus;
}

static double gpu_use_of(const struct rank_values *rank)
{
    return gpus_of(rank) == NULL ? NAN : gpus_of(rank)->use_percent / 100;
}

static double gpu_power_of(const struct rank_values *rank)
{
    return gpus_of(rank) == NULL ? NAN : gpus_of(rank)->power_w;
}

static double gpu_memory_of(const struct rank_values *rank)
{
    return gpus_of(rank) == NULL ? NAN : gpus_of(rank)->memory_bytes;
}

static double gpu_energy_of(const struct rank_values *rank)
{
    return gpus_of(rank) == NULL ? NAN : gpus_of(rank)->energy_j;
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
    {{"hvdrun_rank_gpu_use_ratio", EXPOSITION_GAUGE, "ratio",
      "Time in which some kernel ran on the GPUs of the rank; it is 1 too while a kernel waits."},
     gpu_use_of},
    {{"hvdrun_rank_gpu_power_watts", EXPOSITION_GAUGE, "watts", "Power of the GPUs of the rank."},
     gpu_power_of},
    {{"hvdrun_rank_gpu_memory_bytes", EXPOSITION_GAUGE, "bytes",
      "Memory of GPUs that the rank uses."},
     gpu_memory_of},
    {{"hvdrun_rank_gpu_energy_joules", EXPOSITION_COUNTER, "joules",
      "Energy of the GPUs of the rank, since the driver was loaded."},
     gpu_energy_of},
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

void rank_metrics_put(const struct job *job, struct exposition *out)
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
            const struct rank_values values = {&job->ranks.records[seat],
                                               sampler_rank(job_part(job, sampler), seat),
                                               rank_progress(job, seat)};
            exposition_sample(out, labels, 2, rank_metrics[i].value(&values));
        }
    }
}
