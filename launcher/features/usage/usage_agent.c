/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers about the topic "usage": what the workers of this node use. It measures when the driver
 * asks, and does nothing in between.
 *
 * A worker stands for all of its processes: those below it, and those that have left it but not its
 * session. To find them costs much more than to read them, because the kernel lists children for
 * each thread. So the list of processes is made again only after LIST_PERIOD_MS, and only if that
 * takes less than 1/LIST_SHARE of the time. A child that comes in between is found late. Its use is
 * not lost: when its parent has waited for it, the kernel adds it to that of the parent.
 *
 * The GPUs are measured too, by agent/gpu_sampler.h.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent_state.h"
#include "agent/gpu_sampler.h"
#include "base/clock.h"
#include "base/mem.h"
#include "node/descendants.h"
#include "node/usage.h"
#include "wire/control.pb-c.h"

#define LIST_PERIOD_MS 5000
#define LIST_SHARE 2000 /* of one CPU */
#define DEPTH_MAX 64    /* of a worker's tree of processes; those below it are not found */

/* A live worker. */
struct seat_usage {
    pid_t pid;
    uint32_t seat;
    Hvdrun__RankUsage message;
};

struct process {
    pid_t pid;
    uint64_t start_ticks;
    pid_t owner;           /* the worker's pid; 0: not known yet, or none of them */
    pid_t parent, session; /* while they are listed */
};

struct usage {
    const struct crews *crews;
    struct gpu_sampler *gpus;
    struct asked asked;
    struct buf scratch;
    struct seat_usage *seats; /* sorted by pid */
    size_t seat_count;
    struct process *processes; /* sorted by pid */
    size_t process_count;
    int64_t list_due_ms;
};

/* For both tables, which begin with the pid. */
static int by_pid(const void *a, const void *b)
{
    const pid_t *first = a, *second = b;
    return (*first > *second) - (*first < *second);
}

static struct seat_usage *find_seat(const struct usage *usage, pid_t pid)
{
    if (usage->seat_count == 0)
        return NULL;
    return bsearch(&pid, usage->seats, usage->seat_count, sizeof(*usage->seats), by_pid);
}

static struct process *find_process(const struct usage *usage, pid_t pid)
{
    if (usage->process_count == 0)
        return NULL;
    return bsearch(&pid, usage->processes, usage->process_count, sizeof(*usage->processes), by_pid);
}

struct seat_list {
    struct seat_usage *items;
    size_t count;
};

static void add_seat(void *context, uint32_t seat, pid_t pid)
{
    struct seat_list *list = context;
    struct seat_usage *added = &MEM_ADD(list->items, list->count);
    *added = (struct seat_usage){.pid = pid, .seat = seat};
    hvdrun__rank_usage__init(&added->message);
    added->message.seat = seat;
}

/* The workers of now, with the last values of those that were there before. */
static void update_seats(struct usage *usage)
{
    struct seat_list list = {.items = NULL};
    crews_walk_live(usage->crews, add_seat, &list);
    if (list.count > 0)
        qsort(list.items, list.count, sizeof(*list.items), by_pid);
    for (size_t i = 0; i < list.count; i++) {
        const struct seat_usage *before = find_seat(usage, list.items[i].pid);
        if (before != NULL && before->seat == list.items[i].seat)
            list.items[i].message = before->message;
    }
    free(usage->seats);
    usage->seats = list.items;
    usage->seat_count = list.count;
}

static void list_process(struct usage *usage, pid_t pid)
{
    struct process_usage found;
    if (!process_usage_read(pid, &usage->scratch, &found))
        return;
    MEM_ADD(usage->processes, usage->process_count) =
        (struct process){.pid = pid,
                         .start_ticks = found.stat.start_ticks,
                         .parent = (pid_t)found.stat.parent,
                         .session = (pid_t)found.stat.session};
}

static pid_t owner_of(const struct usage *usage, const struct process *process)
{
    const struct process *at = process;
    for (int depth = 0; at != NULL && depth < DEPTH_MAX; depth++) {
        if (find_seat(usage, at->pid) != NULL)
            return at->pid;
        at = find_process(usage, at->parent);
    }
    return find_seat(usage, process->session) != NULL ? process->session : 0;
}

/* Orphans are below the agent too: it is their subreaper. */
static void list_processes(struct usage *usage)
{
    pid_t *below = NULL;
    size_t count = descendants_list(getpid(), &below);
    usage->process_count = 0;
    for (size_t i = 0; i < count; i++)
        list_process(usage, below[i]);
    free(below);
    if (usage->process_count > 0)
        qsort(usage->processes, usage->process_count, sizeof(*usage->processes), by_pid);
    for (size_t i = 0; i < usage->process_count; i++)
        usage->processes[i].owner = owner_of(usage, &usage->processes[i]);
}

/* Workers that have started since the processes were listed. */
static void add_new_workers(struct usage *usage)
{
    size_t known = usage->process_count;
    for (size_t i = 0; i < usage->seat_count; i++) {
        pid_t pid = usage->seats[i].pid;
        const struct process *listed =
            known == 0 ? NULL
                       : bsearch(&pid, usage->processes, known, sizeof(*usage->processes), by_pid);
        if (listed == NULL)
            list_process(usage, pid);
    }
    for (size_t i = known; i < usage->process_count; i++)
        usage->processes[i].owner = usage->processes[i].pid;
    if (usage->process_count > known)
        qsort(usage->processes, usage->process_count, sizeof(*usage->processes), by_pid);
}

static void update_processes(struct usage *usage)
{
    int64_t begun_ns = clock_mono_ns();
    if (begun_ns / 1000000 < usage->list_due_ms) {
        add_new_workers(usage);
        return;
    }
    list_processes(usage);
    int64_t now_ns = clock_mono_ns(), pause_ms = (now_ns - begun_ns) * LIST_SHARE / 1000000;
    if (pause_ms < LIST_PERIOD_MS)
        pause_ms = LIST_PERIOD_MS;
    usage->list_due_ms = now_ns / 1000000 + pause_ms;
}

static void add_usage(Hvdrun__RankUsage *sum, const struct process_usage *part)
{
    static const uint64_t us_in_s = 1000000;
    sum->cpu_us += part->stat.cpu_ticks * us_in_s / (uint64_t)sysconf(_SC_CLK_TCK);
    sum->resident_bytes += part->stat.resident_pages * (uint64_t)sysconf(_SC_PAGESIZE);
    sum->threads += (uint32_t)part->stat.threads;
    sum->processes++;
    sum->has_io = sum->has_io || part->has_io;
    sum->read_bytes += part->io.read_bytes;
    sum->written_bytes += part->io.written_bytes;
}

static uint64_t later(uint64_t before, uint64_t now)
{
    return now > before ? now : before;
}

/* Counters never go back. They would, where nobody waits for a process that has ended, or where one
 * ends just between the reading of its parent and its own. */
static void finish_seat(Hvdrun__RankUsage *sum, const Hvdrun__RankUsage *before)
{
    sum->when_ns = (uint64_t)clock_mono_ns();
    sum->cpu_us = later(before->cpu_us, sum->cpu_us);
    sum->read_bytes = later(before->read_bytes, sum->read_bytes);
    sum->written_bytes = later(before->written_bytes, sum->written_bytes);
}

/* Reads all processes, and forgets those that are gone. */
static void read_processes(struct usage *usage)
{
    size_t kept = 0;
    for (size_t i = 0; i < usage->process_count; i++) {
        struct process process = usage->processes[i];
        struct seat_usage *seat = find_seat(usage, process.owner);
        struct process_usage part;
        if (seat == NULL || !process_usage_read(process.pid, &usage->scratch, &part) ||
            part.stat.start_ticks != process.start_ticks)
            continue;
        add_usage(&seat->message, &part);
        usage->processes[kept++] = process;
    }
    usage->process_count = kept;
}

static void read_seats(struct usage *usage)
{
    Hvdrun__RankUsage *before AUTO_FREE = mem_array(usage->seat_count + 1, sizeof(*before));
    for (size_t i = 0; i < usage->seat_count; i++) {
        before[i] = usage->seats[i].message;
        hvdrun__rank_usage__init(&usage->seats[i].message);
        usage->seats[i].message.seat = usage->seats[i].seat;
    }
    read_processes(usage);
    for (size_t i = 0; i < usage->seat_count; i++)
        finish_seat(&usage->seats[i].message, &before[i]);
}

static void fill_pressure(const struct proc_pressure *source, Hvdrun__Pressure *out)
{
    hvdrun__pressure__init(out);
    out->some_percent = source->some_percent;
    out->full_percent = source->full_percent;
    out->some_us = source->some_us;
    out->full_us = source->full_us;
}

/* What the message has of GPUs; it points into this. */
struct gpu_part {
    struct gpu_owner *owners;
    size_t owner_count;
    uint32_t *places; /* of each owner */
    Hvdrun__GpuUsage *gpus, **list;
};

static void gpu_part_clear(struct gpu_part *part)
{
    free(part->owners);
    free(part->places);
    free(part->gpus);
    free(part->list);
}
#define AUTO_GPU_PART __attribute__((cleanup(gpu_part_clear)))

/* Without the processes, which only the agent knows. */
static void add_host_gpus(struct gpu_part *part, const Hvdrun__GpuUsages *gpus,
                          Hvdrun__HostUsage *host)
{
    size_t count = gpus != NULL ? gpus->n_gpus : 0;
    part->gpus = mem_array(count + 1, sizeof(*part->gpus));
    part->list = mem_array(count + 1, sizeof(Hvdrun__GpuUsage *));
    for (size_t i = 0; i < count; i++) {
        part->gpus[i] = *gpus->gpus[i];
        part->gpus[i].n_processes = 0;
        part->list[i] = &part->gpus[i];
    }
    host->gpus = part->list;
    host->n_gpus = count;
}

static void add_rank_gpus(const struct gpu_part *part, const struct seat_usage *seat,
                          Hvdrun__RankUsage *message)
{
    message->n_gpus = 0;
    message->has_gpu_memory = false;
    message->gpu_memory_bytes = 0;
    for (size_t i = 0; i < part->owner_count; i++) {
        const struct gpu_owner *owner = &part->owners[i];
        if (owner->seat != seat->seat)
            continue;
        message->gpus = message->n_gpus == 0 ? &part->places[i] : message->gpus;
        message->n_gpus++;
        message->has_gpu_memory = message->has_gpu_memory || owner->has_memory;
        message->gpu_memory_bytes += owner->memory_bytes;
    }
}

static void add_gpus(const struct usage *usage, const Hvdrun__GpuUsages *gpus,
                     struct gpu_part *part, Hvdrun__HostUsage *host)
{
    add_host_gpus(part, gpus, host);
    part->owner_count = gpu_owners_find(usage->crews, gpus, &part->owners);
    part->places = mem_array(part->owner_count + 1, sizeof(*part->places));
    for (size_t i = 0; i < part->owner_count; i++)
        part->places[i] = part->owners[i].gpu;
    for (size_t i = 0; i < usage->seat_count; i++)
        add_rank_gpus(part, &usage->seats[i], &usage->seats[i].message);
}

static void fill_host(const struct host_usage *source, Hvdrun__HostUsage *out,
                      Hvdrun__Pressure *pressure)
{
    Hvdrun__Pressure **places[HOST_RESOURCES] = {&out->cpu, &out->memory, &out->io};
    for (int i = 0; i < HOST_RESOURCES; i++) {
        fill_pressure(&source->pressure[i], &pressure[i]);
        *places[i] = source->has_pressure[i] ? &pressure[i] : NULL;
    }
    out->has_load = source->has_load;
    out->load = source->load;
    out->memory_bytes = source->has_memory ? source->memory.total_bytes : 0;
    out->memory_available_bytes = source->has_memory ? source->memory.available_bytes : 0;
}

static void forget_gpus(struct usage *usage)
{
    for (size_t i = 0; i < usage->seat_count; i++) {
        usage->seats[i].message.n_gpus = 0;
        usage->seats[i].message.gpus = NULL;
    }
}

static void send(struct usage *usage, const struct host_usage *host, const Hvdrun__GpuUsages *gpus)
{
    Hvdrun__Usage message = HVDRUN__USAGE__INIT;
    Hvdrun__HostUsage whole = HVDRUN__HOST_USAGE__INIT;
    Hvdrun__Pressure pressure[HOST_RESOURCES];
    struct gpu_part part AUTO_GPU_PART = {.owners = NULL};
    Hvdrun__RankUsage **ranks AUTO_FREE = mem_array(usage->seat_count + 1, sizeof(*ranks));
    add_gpus(usage, gpus, &part, &whole);
    for (size_t i = 0; i < usage->seat_count; i++) {
        if (usage->seats[i].message.processes > 0) /* else it has ended just now */
            ranks[message.n_ranks++] = &usage->seats[i].message;
    }
    fill_host(host, &whole, pressure);
    message.ranks = ranks;
    message.host = &whole;
    asked_answer(&usage->asked, &message.base);
    forget_gpus(usage);
}

static void gpus_known(void *context, const Hvdrun__GpuUsages *gpus)
{
    struct usage *usage = context;
    struct host_usage host;
    update_seats(usage);
    update_processes(usage);
    read_seats(usage);
    host_usage_read(&usage->scratch, &host);
    send(usage, &host, gpus);
}

/* As soon as it is known what the GPUs do, or shortly later without that. A question that comes
 * meanwhile takes the place of this one. */
static void answer(struct agent *agent, const struct asked *asked, const ProtobufCMessage *request)
{
    struct usage *usage = agent_own(agent, usage);
    (void)request;
    if (usage == NULL) {
        usage = MEM_NEW((struct usage){.crews = agent->crews, .gpus = agent->gpus});
        buf_init(&usage->scratch, USAGE_TEXT_MAX);
        agent->own[AGENT_PART_usage] = usage;
    }
    usage->asked = *asked;
    gpu_sampler_ask(usage->gpus, gpus_known, usage);
}

static void close_part(struct agent *agent)
{
    struct usage *usage = agent_own(agent, usage);
    buf_destroy(&usage->scratch);
    free(usage->seats);
    free(usage->processes);
    free(usage);
}

static const struct ask_rule topics[] = {{&topic_usage, answer}, {.topic = NULL}};
const struct agent_part usage_agent_part = {.name = "usage", .topics = topics, .close = close_part};
