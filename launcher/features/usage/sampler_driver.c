/* SPDX-License-Identifier: Apache-2.0 */
#include "features/usage/usage_driver.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "driver/job/part.h"
#include "features/usage/usage_test.h"
#include "model/usage/gpu_words.h"
#include "wire/control.pb-c.h"

const char usage_feature[] = "hvdrun top, and what ranks and hosts use";

/* What a GPU does, and what the GPUs of a rank do, from the message of an agent. Pure. A value that
 * is not known is NAN. */

#define GPU_VALUES_MAX 64 /* of a host */

static double value(bool known, uint64_t number, double divisor)
{
    return known ? (double)number / divisor : NAN;
}

void gpu_values_read(const Hvdrun__GpuUsage *message, struct gpu_values *out)
{
    *out = (struct gpu_values){
        .index = message->index,
        .use_percent = value(message->has_use, message->use_percent, 1),
        .memory_use_percent = value(message->has_use, message->memory_use_percent, 1),
        .power_w = value(message->has_power, message->power_mw, 1000),
        .energy_j = value(message->has_energy, message->energy_mj, 1000),
        .memory_bytes = value(message->has_memory, message->memory_bytes, 1),
        .memory_used_bytes = value(message->has_memory, message->memory_used_bytes, 1),
        .trouble = gpu_trouble_text((int)message->trouble)};
    snprintf(out->uuid, sizeof(out->uuid), "%s", message->uuid);
}

/* A sum that lacks a part is not known. */
struct rank_gpus rank_gpus_of(const Hvdrun__RankUsage *message, const struct gpu_values *gpus,
                              size_t count)
{
    struct rank_gpus sum = {.count = 0};
    for (size_t i = 0; i < message->n_gpus; i++) {
        if (message->gpus[i] >= count)
            continue;
        const struct gpu_values *gpu = &gpus[message->gpus[i]];
        sum.count++;
        sum.use_percent += gpu->use_percent;
        sum.power_w += gpu->power_w;
        sum.energy_j += gpu->energy_j;
    }
    if (sum.count > 0)
        sum.use_percent /= sum.count;
    sum.memory_bytes = value(message->has_gpu_memory, message->gpu_memory_bytes, 1);
    return sum;
}

#define LATE_NS ((int64_t)10 * SAMPLER_LIMIT_MS * 1000000)

struct sampler {
    struct job *job;
    struct host_sample *hosts; /* by node->index */
    size_t host_count;
    struct rank_usage *ranks; /* by seat */
    size_t rank_count;
};

static int open_part(struct job *job, struct error *err)
{
    (void)err;
    job_part(job, sampler)->job = job;
    return 0;
}

static void close_part(struct job *job)
{
    struct sampler *sampler = job_part(job, sampler);
    for (size_t i = 0; i < sampler->host_count; i++)
        free(sampler->hosts[i].gpus);
    free(sampler->hosts);
    free(sampler->ranks);
}

/* A seat of this node, or NULL. */
static struct rank_usage *find_rank(struct sampler *sampler, const struct node_link *node,
                                    uint32_t seat)
{
    if (seat >= sampler->rank_count)
        return NULL;
    const struct rank_record *record = &sampler->job->ranks.records[seat];
    bool ours = record->epoch != 0 && record->node == node->index;
    struct rank_usage *usage = ours ? &sampler->ranks[seat] : NULL;
    if (usage != NULL && usage->pid != record->pid)
        *usage = (struct rank_usage){.pid = record->pid}; /* another worker has the seat now */
    return usage;
}

static void take_rank(struct sampler *sampler, const struct node_link *node,
                      const Hvdrun__RankUsage *message)
{
    const struct host_sample *host = &sampler->hosts[node->index];
    struct rank_usage *usage = find_rank(sampler, node, message->seat);
    if (usage == NULL)
        return; /* it has come after the question */
    int64_t now = clock_mono_ns(), when = node_link_time(node, message->when_ns);
    if (when > now || when < now - LATE_NS)
        when = now; /* its clock is not known yet, or it is not to be trusted */
    if (usage->last.when_ns != 0 && when <= usage->last.when_ns)
        return;
    usage->before = usage->last;
    usage->last = (struct rank_sample){.when_ns = when,
                                       .cpu_us = message->cpu_us,
                                       .resident_bytes = message->resident_bytes,
                                       .read_bytes = message->read_bytes,
                                       .written_bytes = message->written_bytes,
                                       .threads = message->threads,
                                       .processes = message->processes,
                                       .has_io = message->has_io,
                                       .gpus = rank_gpus_of(message, host->gpus, host->gpu_count)};
}

static struct host_pressure pressure_of(const Hvdrun__Pressure *message)
{
    if (message == NULL)
        return (struct host_pressure){.known = false};
    return (struct host_pressure){.known = true,
                                  .some_percent = message->some_percent,
                                  .some_s = (double)message->some_us / 1e6,
                                  .full_s = (double)message->full_us / 1e6};
}

static void take_gpus(struct host_sample *out, const Hvdrun__HostUsage *message)
{
    out->gpu_count = message->n_gpus < GPU_VALUES_MAX ? message->n_gpus : GPU_VALUES_MAX;
    out->gpus = mem_array(out->gpu_count + 1, sizeof(*out->gpus));
    for (size_t i = 0; i < out->gpu_count; i++)
        gpu_values_read(message->gpus[i], &out->gpus[i]);
}

static void take_host(struct host_sample *out, const Hvdrun__HostUsage *message)
{
    free(out->gpus);
    *out = (struct host_sample){.when_ns = clock_mono_ns()};
    if (message == NULL)
        return;
    take_gpus(out, message);
    out->has_load = message->has_load;
    out->load = message->load;
    out->memory_bytes = message->memory_bytes;
    out->memory_available_bytes = message->memory_available_bytes;
    out->cpu = pressure_of(message->cpu);
    out->memory = pressure_of(message->memory);
    out->io = pressure_of(message->io);
}

static int take(struct job *job, struct node_link *node, ProtobufCMessage **answer)
{
    const Hvdrun__Usage *message = (const Hvdrun__Usage *)*answer;
    struct sampler *sampler = job_part(job, sampler);
    take_host(&sampler->hosts[node->index], message->host);
    for (size_t i = 0; i < message->n_ranks; i++)
        take_rank(sampler, node, message->ranks[i]);
    return 0;
}

bool sampler_ask(struct sampler *sampler, ask_done *done, void *context)
{
    static const struct question question = {&topic_usage, take, .keep = false};
    const struct job *job = sampler->job;
    size_t hosts = (size_t)job->node_count, ranks = (size_t)job->ranks.size;
    sampler->hosts =
        mem_reach(sampler->hosts, &sampler->host_count, hosts, sizeof(*sampler->hosts));
    sampler->ranks =
        mem_reach(sampler->ranks, &sampler->rank_count, ranks, sizeof(*sampler->ranks));
    return ask_all(sampler->job, &question, NULL, SAMPLER_LIMIT_MS, done, context);
}

const struct rank_usage *sampler_rank(const struct sampler *sampler, int seat)
{
    if ((size_t)seat >= sampler->rank_count)
        return NULL;
    const struct rank_usage *usage = &sampler->ranks[seat];
    bool same = usage->pid == sampler->job->ranks.records[seat].pid;
    return same && usage->last.when_ns != 0 ? usage : NULL;
}

const struct host_sample *sampler_host(const struct sampler *sampler, int node)
{
    if ((size_t)node >= sampler->host_count || sampler->hosts[node].when_ns == 0)
        return NULL;
    return &sampler->hosts[node];
}

double rank_usage_cpus(const struct rank_usage *usage)
{
    const struct rank_sample *last = &usage->last, *before = &usage->before;
    if (before->when_ns == 0 || last->cpu_us < before->cpu_us)
        return -1;
    return (double)(last->cpu_us - before->cpu_us) * 1000 /
           (double)(last->when_ns - before->when_ns);
}

const struct driver_part sampler_part = {
    .name = "sampler", .size = sizeof(struct sampler), .open = open_part, .close = close_part};
