/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/usage/sampler.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"

#define LATE_NS ((int64_t)10 * SAMPLER_ROUND_MS * 1000000)

struct node_sample {
    struct host_sample host;
    bool awaited;
};

struct sampler {
    struct job *job;
    struct loop_timer *deadline; /* of the round; NULL before the first one */
    struct node_sample *nodes;   /* by node->index */
    int node_count;
    struct rank_usage *ranks; /* by seat */
    int rank_count;
    int awaited; /* nodes; 0: no round */
    int64_t round_ms;
    bool asked;
    struct sampler_waiter *waiters;
};

struct sampler *sampler_create(struct job *job)
{
    struct sampler *sampler = mem_alloc(sizeof(*sampler));
    *sampler = (struct sampler){.job = job};
    return sampler;
}

void sampler_destroy(struct sampler *sampler)
{
    if (sampler == NULL)
        return;
    loop_timer_destroy(sampler->deadline);
    for (int i = 0; i < sampler->node_count; i++)
        free(sampler->nodes[i].host.gpus);
    free(sampler->nodes);
    free(sampler->ranks);
    free(sampler);
}

static void end_round(void *context)
{
    struct sampler *sampler = context;
    sampler->awaited = 0;
    loop_timer_clear(sampler->deadline);
    for (int i = 0; i < sampler->node_count; i++)
        sampler->nodes[i].awaited = false;
    while (sampler->waiters != NULL) {
        struct sampler_waiter *waiter = sampler->waiters;
        sampler->waiters = waiter->next;
        waiter->waits = false;
        waiter->done(waiter->context);
    }
}

static void grow(struct sampler *sampler)
{
    const struct job *job = sampler->job;
    if (sampler->deadline == NULL)
        sampler->deadline = loop_timer_create(job->loop, end_round, sampler);
    if (job->node_count > sampler->node_count) {
        sampler->nodes =
            mem_resize_array(sampler->nodes, (size_t)job->node_count, sizeof(*sampler->nodes));
        for (int i = sampler->node_count; i < job->node_count; i++)
            sampler->nodes[i] = (struct node_sample){.awaited = false};
        sampler->node_count = job->node_count;
    }
    if (job->ranks.size > sampler->rank_count) {
        sampler->ranks =
            mem_resize_array(sampler->ranks, (size_t)job->ranks.size, sizeof(*sampler->ranks));
        for (int i = sampler->rank_count; i < job->ranks.size; i++)
            sampler->ranks[i] = (struct rank_usage){.pid = 0};
        sampler->rank_count = job->ranks.size;
    }
}

static void begin_round(struct sampler *sampler)
{
    const struct job *job = sampler->job;
    grow(sampler);
    for (int i = 0; i < job->node_count; i++) {
        struct node_link *node = job->nodes[i];
        bool has_agent = node_link_alive(node) && node->hello != NULL;
        if (!has_agent || node->state >= NODE_CLOSING)
            continue;
        node_link_send(node, FRAME_SAMPLE, 0, NULL);
        sampler->nodes[i].awaited = true;
        sampler->awaited++;
    }
    sampler->asked = true;
    sampler->round_ms = clock_mono_ms();
    loop_timer_set(sampler->deadline, sampler->awaited > 0 ? SAMPLER_ROUND_MS : 0);
}

bool sampler_is_asking(const struct sampler *sampler)
{
    return sampler->deadline != NULL && loop_timer_is_set(sampler->deadline);
}

bool sampler_ask(struct sampler *sampler, struct sampler_waiter *waiter)
{
    bool runs = sampler_is_asking(sampler);
    if (!runs && sampler->asked && sampler_age_ms(sampler) < SAMPLER_FRESH_MS)
        return false;
    if (!runs)
        begin_round(sampler);
    if (waiter != NULL && !waiter->waits) {
        waiter->next = sampler->waiters;
        waiter->waits = true;
        sampler->waiters = waiter;
    }
    return true;
}

void sampler_forget(struct sampler *sampler, struct sampler_waiter *waiter)
{
    struct sampler_waiter **at = &sampler->waiters;
    while (*at != NULL && *at != waiter)
        at = &(*at)->next;
    if (*at != NULL)
        *at = waiter->next;
    waiter->waits = false;
}

/* A seat of this node, or NULL. */
static struct rank_usage *find_rank(struct sampler *sampler, const struct node_link *node,
                                    uint32_t seat)
{
    if (seat >= (uint32_t)sampler->rank_count)
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
    const struct host_sample *host = &sampler->nodes[node->index].host;
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
                                  .full_percent = message->full_percent,
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

int sampler_take(struct job *job, struct node_link *node, const struct agent_frame *frame)
{
    struct sampler *sampler = job->sampler;
    Hvdrun__Sampled *message = hvdrun__sampled__unpack(NULL, frame->length, frame->body);
    if (message == NULL)
        return -1;
    if (node->index < sampler->node_count && sampler->nodes[node->index].awaited) {
        struct node_sample *sample = &sampler->nodes[node->index];
        take_host(&sample->host, message->host);
        for (size_t i = 0; i < message->n_ranks; i++)
            take_rank(sampler, node, message->ranks[i]);
        sample->awaited = false;
        if (--sampler->awaited == 0)
            end_round(sampler);
    } /* else it is late */
    hvdrun__sampled__free_unpacked(message, NULL);
    return 0;
}

int64_t sampler_age_ms(const struct sampler *sampler)
{
    return sampler->asked ? clock_mono_ms() - sampler->round_ms : -1;
}

const struct rank_usage *sampler_rank(const struct sampler *sampler, int seat)
{
    if (seat >= sampler->rank_count)
        return NULL;
    const struct rank_usage *usage = &sampler->ranks[seat];
    bool same = usage->pid == sampler->job->ranks.records[seat].pid;
    return same && usage->last.when_ns != 0 ? usage : NULL;
}

const struct host_sample *sampler_host(const struct sampler *sampler, int node)
{
    if (node >= sampler->node_count || sampler->nodes[node].host.when_ns == 0)
        return NULL;
    return &sampler->nodes[node].host;
}

double rank_usage_cpus(const struct rank_usage *usage)
{
    const struct rank_sample *last = &usage->last, *before = &usage->before;
    if (before->when_ns == 0 || last->cpu_us < before->cpu_us)
        return -1;
    return (double)(last->cpu_us - before->cpu_us) * 1000 /
           (double)(last->when_ns - before->when_ns);
}
