/* SPDX-License-Identifier: Apache-2.0 */
/* Answers about the topic "pulse": what the workers of this node have used so far, so that the
 * driver sees whether they work. */
#include "features/hang/pulse_agent.h"

#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "agent/agent_state.h"
#include "agent/crews.h"
#include "agent/gpu_sampler.h"
#include "agent/worker_lines.h"
#include "base/clock.h"
#include "base/mem.h"
#include "features/hang/hang.h"
#include "features/hang/ras.h"
#include "features/hang/ras_client.h"
#include "io/helpers.h"
#include "io/proc.h"
#include "node/descendants.h"
#include "node/facts.h"
#include "node/proc_state.h"
#include "node/usage.h"

#define ENVIRONMENT_MAX ((size_t)4 << 20)

static void take_first(void *context, uint32_t seat, pid_t pid)
{
    pid_t *first = context;
    (void)seat;
    if (*first == 0)
        *first = pid;
}

/* NULL: it has none. */
static char *address_of(pid_t pid)
{
    struct buf text AUTO_BUF = BUF_INIT(ENVIRONMENT_MAX);
    return proc_read(pid, 0, "environ", &text) ? mem_strdup(proc_variable(&text, "NCCL_RAS_ADDR"))
                                               : NULL;
}

char *ras_address_of(const struct crews *crews)
{
    pid_t first = 0;
    crews_walk_live(crews, take_first, &first);
    char *address = first == 0 ? NULL : address_of(first);
    return address != NULL || first == 0 ? address : mem_strdup(RAS_USUAL_ADDRESS);
}

/*
 * What GPUs and NCCL say about the workers of this node, for a job that is quiet. Both are asked in
 * the background, so that nothing waits for them. What they last said goes into the next pulses,
 * while it is fresh.
 *
 * NCCL is asked at the address in NCCL_RAS_ADDR of the first worker that runs. Of its answer, only
 * the workers of this node count: those with the address of this machine, and a pid of theirs.
 */

struct gpu_sign {
    uint32_t seat;
    bool known; /* all of its GPUs say it */
    uint64_t power_mw;
    uint32_t memory_use;
};

struct ras_sign {
    uint32_t seat;
    Hvdrun__RasPlace place;
    uint64_t counts[RAS_OPERATIONS];
};

struct closer_look {
    struct loop *loop;
    const struct crews *crews;
    struct gpu_sampler *gpus;
    const struct node_facts *facts;
    struct ras_client *client; /* NULL: no question is under way */
    struct gpu_sign *gpu_signs;
    size_t gpu_count;
    int64_t gpu_ms;
    struct ras_sign *ras_signs; /* sorted by seat */
    Hvdrun__RasPlace **ras_list;
    size_t ras_count;
    int64_t ras_ms;
    int64_t asked_ms, asked_before_ms; /* when both were asked, and asked before that */
    bool ras_talks; /* it has answered, however badly: answers reach it over TCP of the ranks */
};

static struct closer_look *closer_look_create(struct loop *loop, const struct crews *crews,
                                              struct gpu_sampler *gpus,
                                              const struct node_facts *facts)
{
    return MEM_NEW(
        (struct closer_look){.loop = loop, .crews = crews, .gpus = gpus, .facts = facts});
}

static void closer_look_destroy(struct closer_look *look)
{
    ras_client_destroy(look->client);
    free(look->gpu_signs);
    free(look->ras_signs);
    free(look->ras_list);
    free(look);
}

static struct gpu_sign *gpu_sign_of(struct closer_look *look, uint32_t seat)
{
    for (size_t i = 0; i < look->gpu_count; i++) {
        if (look->gpu_signs[i].seat == seat)
            return &look->gpu_signs[i];
    }
    return NULL;
}

static void take_gpu(struct closer_look *look, uint32_t seat, const Hvdrun__GpuUsage *gpu)
{
    struct gpu_sign *sign = gpu_sign_of(look, seat);
    if (sign == NULL) {
        sign = &MEM_ADD(look->gpu_signs, look->gpu_count);
        *sign = (struct gpu_sign){.seat = seat, .known = true};
    }
    sign->known = sign->known && gpu->has_power && gpu->has_use;
    sign->power_mw += gpu->power_mw;
    if (gpu->memory_use_percent > sign->memory_use)
        sign->memory_use = gpu->memory_use_percent;
}

static void take_gpus(void *context, const Hvdrun__GpuUsages *gpus)
{
    struct closer_look *look = context;
    struct gpu_owner *owners AUTO_FREE = NULL;
    size_t count = gpu_owners_find(look->crews, gpus, &owners);
    look->gpu_count = 0;
    look->gpu_ms = clock_mono_ms();
    for (size_t i = 0; i < count; i++)
        take_gpu(look, owners[i].seat, gpus->gpus[owners[i].gpu]);
}

static bool is_here(const struct closer_look *look, const char *address)
{
    bool here = strncmp(address, "127.", 4) == 0 || strcmp(address, "::1") == 0;
    for (size_t i = 0; i < look->facts->address_count && !here; i++)
        here = strcmp(look->facts->addresses[i].text, address) == 0;
    return here;
}

static int by_seat(const void *a, const void *b)
{
    const struct ras_sign *first = a, *second = b;
    return (first->seat > second->seat) - (first->seat < second->seat);
}

static void take_entry(struct closer_look *look, const struct ras_entry *entry, uint32_t seat)
{
    struct ras_sign *sign = &MEM_ADD(look->ras_signs, look->ras_count);
    *sign = (struct ras_sign){.seat = seat};
    hvdrun__ras_place__init(&sign->place);
    sign->place.comm = entry->place.comm;
    for (size_t i = 0; i < RAS_OPERATIONS; i++)
        sign->counts[i] = (uint64_t)entry->place.counts[i];
}

/* The signs do not move any more. */
static void link_signs(struct closer_look *look)
{
    if (look->ras_count > 1)
        qsort(look->ras_signs, look->ras_count, sizeof(*look->ras_signs), by_seat);
    free(look->ras_list);
    look->ras_list = mem_array(look->ras_count + 1, sizeof(Hvdrun__RasPlace *));
    for (size_t i = 0; i < look->ras_count; i++) {
        look->ras_signs[i].place.counts = look->ras_signs[i].counts;
        look->ras_signs[i].place.n_counts = RAS_OPERATIONS;
        look->ras_list[i] = &look->ras_signs[i].place;
    }
}

static void take_answer(void *context, const char *text, size_t length)
{
    struct closer_look *look = context;
    struct buf scratch AUTO_BUF = BUF_INIT(USAGE_TEXT_MAX);
    struct ras_report report = {.count = 0};
    look->ras_talks = look->ras_talks || text != NULL;
    if (text != NULL && ras_json_read(text, length, &report, NULL) == 0) {
        look->ras_count = 0;
        look->ras_ms = clock_mono_ms();
        for (size_t i = 0; i < report.count; i++) {
            const struct ras_entry *entry = &report.entries[i];
            uint32_t seat;
            if (entry->pid > 0 && entry->pid <= INT32_MAX && is_here(look, entry->host) &&
                crews_seat_below(look->crews, (pid_t)entry->pid, &scratch, &seat))
                take_entry(look, entry, seat);
        }
        link_signs(look);
    }
    ras_report_clear(&report);
    ras_client_destroy(look->client);
    look->client = NULL;
}

static void ask_nccl(struct closer_look *look)
{
    char *address AUTO_FREE = look->client == NULL ? ras_address_of(look->crews) : NULL;
    if (address != NULL)
        look->client = ras_client_create(look->loop, address, take_answer, look);
}

static void closer_look_ask(struct closer_look *look)
{
    look->asked_before_ms = look->asked_ms;
    look->asked_ms = clock_mono_ms();
    gpu_sampler_ask(look->gpus, take_gpus, look);
    ask_nccl(look);
}

static bool is_fresh(const struct closer_look *look, int64_t said_ms)
{
    return hang_sign_is_fresh(look->asked_ms, said_ms, look->asked_before_ms);
}

/* Adds what is known to a worker's pulse, which borrows it until the next turn of the loop. */
static void closer_look_fill(struct closer_look *look, Hvdrun__RankPulse *pulse)
{
    const struct gpu_sign *gpu =
        is_fresh(look, look->gpu_ms) ? gpu_sign_of(look, pulse->seat) : NULL;
    if (gpu != NULL && gpu->known) {
        pulse->has_gpu = true;
        pulse->gpu_power_mw = gpu->power_mw;
        pulse->gpu_memory_use = gpu->memory_use;
    }
    for (size_t i = 0; is_fresh(look, look->ras_ms) && i < look->ras_count; i++) {
        if (look->ras_signs[i].seat != pulse->seat)
            continue;
        pulse->ras = pulse->n_ras == 0 ? &look->ras_list[i] : pulse->ras;
        pulse->n_ras++;
    }
}

/* The pulse. */

#define ASKED_THREADS 1000 /* more cost more than a walk through /proc */
#define TCP_FILES 40000    /* of all workers: nothing waits longer than about 1.1 s for them */
#define CLOSER_FILES 4000  /* again and again: 0.1 s */

struct pulse {
    const struct worker_lines *lines; /* they say how far each worker has come; NULL: none */
    struct closer_look *look;         /* adds what it knows; NULL: nobody has asked for it */
    bool tcp, echo;                   /* echo: the data of TCP may be answers to us */
    struct descendants_table *processes;
    size_t files;
    Hvdrun__Pulse message;
};

static void add_rank(void *context, uint32_t seat, pid_t pid)
{
    struct pulse *pulse = context;
    Hvdrun__Pulse *message = &pulse->message;
    struct activity activity;
    uint64_t operations = 0;
    if (!activity_read(pulse->processes, pid, pulse->look != NULL || pulse->tcp, &activity))
        return;
    if (pulse->lines != NULL && !worker_lines_progress(pulse->lines, seat, &operations))
        operations = 0;
    Hvdrun__RankPulse *rank = mem_alloc(sizeof(*rank));
    hvdrun__rank_pulse__init(rank);
    rank->seat = seat;
    rank->cpu_us = activity.cpu_us;
    rank->io_bytes = activity.io_bytes;
    rank->faults = activity.faults;
    rank->waits = activity.waits;
    rank->main_ns = activity.main_ns;
    rank->receivers = activity.receivers;
    rank->receptions = activity.receptions;
    rank->debugged = activity.debugged;
    rank->operations = operations;
    if (pulse->tcp || pulse->look != NULL) {
        struct tcp_bytes tcp;
        const char *doubt = tcp_bytes_read(pulse->processes, pid, &pulse->files, &tcp);
        rank->tcp_bytes = tcp.all;
        rank->tcp_data = pulse->echo ? 0 : tcp.data;
        doubt = activity.doubt != NULL ? activity.doubt : doubt;
        rank->doubt = doubt != NULL ? (char *)doubt : rank->doubt; /* protobuf-c only reads it */
    }
    char *stopped = proc_state_held(pid);
    if (stopped != NULL)
        rank->stopped = stopped;
    if (pulse->look != NULL)
        closer_look_fill(pulse->look, rank);
    MEM_ADD(message->ranks, message->n_ranks) = rank;
}

struct known {
    const struct helpers *helpers;
    pid_t *workers; /* that run */
    size_t count, room;
};

static void add_worker(void *context, uint32_t seat, pid_t pid)
{
    struct known *known = context;
    (void)seat;
    MEM_ADD_ROOM(known->workers, known->count, known->room) = pid;
}

static bool is_known(const void *context, pid_t pid)
{
    const struct known *known = context;
    bool found = helpers_has(known->helpers, pid);
    for (size_t i = 0; i < known->count && !found; i++)
        found = known->workers[i] == pid;
    return found;
}

/* A worker that was a shell may have left its program, which goes on as that rank. */
static bool has_strays(const struct agent *agent)
{
    struct known known = {.helpers = agent->helpers};
    crews_walk_live(agent->crews, add_worker, &known);
    const struct descendants_spared spared = {is_known, &known};
    pid_t *strays = NULL;
    size_t count = descendants_list_except(getpid(), &spared, &strays);
    free(strays);
    free(known.workers);
    return count > 0;
}

static void clear(Hvdrun__Pulse *message)
{
    for (size_t i = 0; i < message->n_ranks; i++) {
        if (message->ranks[i]->stopped[0] != '\0')
            free(message->ranks[i]->stopped);
        free(message->ranks[i]);
    }
    free(message->ranks);
}

static struct closer_look *closer_look_of(struct agent *agent)
{
    if (agent_own(agent, closer_look) == NULL)
        agent->own[AGENT_PART_closer_look] =
            closer_look_create(agent->loop, agent->crews, agent->gpus, agent->facts);
    return agent_own(agent, closer_look);
}

static void answer(struct agent *agent, const struct asked *asked, const ProtobufCMessage *request)
{
    const Hvdrun__PulseRequest *wanted = (const Hvdrun__PulseRequest *)request;
    struct worker_lines *lines = agent_own(agent, worker_lines);
    struct pulse pulse = {.lines = lines,
                          .tcp = wanted->tcp,
                          .files = wanted->tcp ? TCP_FILES : CLOSER_FILES,
                          .message = HVDRUN__PULSE__INIT};
    if (wanted->closer) {
        pulse.look = closer_look_of(agent);
        pulse.echo = pulse.look->ras_talks || pulse.look->client != NULL;
        closer_look_ask(pulse.look);
    }
    pulse.message.held = agent->pool.paused;
    pulse.message.strays = wanted->tcp && has_strays(agent);
    pulse.processes = descendants_table_read(ASKED_THREADS);
    crews_walk_live(agent->crews, add_rank, &pulse);
    descendants_table_destroy(pulse.processes);
    asked_answer(asked, &pulse.message.base);
    clear(&pulse.message);
    if (lines != NULL)
        worker_lines_ask(lines, wanted->closer); /* the next pulse has the answers */
}

static void close_part(struct agent *agent)
{
    closer_look_destroy(agent_own(agent, closer_look));
}

static const struct ask_rule topics[] = {{&topic_pulse, answer}, {.topic = NULL}};
const struct agent_part closer_look_agent_part = {
    .name = "closer_look", .topics = topics, .close = close_part};
