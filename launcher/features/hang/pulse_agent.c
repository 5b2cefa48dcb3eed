/* SPDX-License-Identifier: Apache-2.0 */
/* Answers about the topic "pulse": what the workers of this node have used so far, so that the
 * driver sees whether they work. */
#include <stdlib.h>

#include "agent/agent_state.h"
#include "agent/worker_lines.h"
#include "base/mem.h"
#include "features/hang/closer_look_agent.h"
#include "node/proc_state.h"
#include "node/usage.h"

/* Where it comes from. `lines` (may be NULL) say how far each worker has come. `look` (may be NULL)
 * adds what it knows. `held`: nobody reads the output of the workers. */
struct pulse_sources {
    const struct crews *crews;
    const struct worker_lines *lines;
    struct closer_look *look;
    bool held;
};

#define ASKED_THREADS 1000 /* more cost more than a walk through /proc */

struct pulse {
    const struct pulse_sources *sources;
    struct descendants_table *processes;
    Hvdrun__Pulse message;
};

static void add_rank(void *context, uint32_t seat, pid_t pid)
{
    struct pulse *pulse = context;
    const struct pulse_sources *sources = pulse->sources;
    Hvdrun__Pulse *message = &pulse->message;
    struct activity activity;
    uint64_t operations = 0;
    if (!activity_read(pulse->processes, pid, sources->look != NULL, &activity))
        return;
    if (sources->lines != NULL && !worker_lines_progress(sources->lines, seat, &operations))
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
    char *stopped = proc_state_held(pid);
    if (stopped != NULL)
        rank->stopped = stopped;
    if (sources->look != NULL)
        closer_look_fill(sources->look, rank);
    message->ranks =
        mem_resize_array(message->ranks, message->n_ranks + 1, sizeof(Hvdrun__RankPulse *));
    message->ranks[message->n_ranks++] = rank;
}

static void answer_from(const struct pulse_sources *sources, const struct asked *asked)
{
    struct pulse pulse = {.sources = sources,
                          .processes = descendants_table_read(ASKED_THREADS),
                          .message = HVDRUN__PULSE__INIT};
    pulse.message.held = sources->held;
    crews_walk_live(sources->crews, add_rank, &pulse);
    descendants_table_destroy(pulse.processes);
    asked_answer(asked, &pulse.message.base);
    for (size_t i = 0; i < pulse.message.n_ranks; i++) {
        if (pulse.message.ranks[i]->stopped[0] != '\0')
            free(pulse.message.ranks[i]->stopped);
        free(pulse.message.ranks[i]);
    }
    free(pulse.message.ranks);
}

static void answer(struct agent *agent, const struct asked *asked, const ProtobufCMessage *request)
{
    bool closer = ((const Hvdrun__PulseRequest *)request)->closer;
    if (closer && agent_own(agent, closer_look) == NULL)
        agent->own[AGENT_PART_closer_look] =
            closer_look_create(agent->loop, agent->crews, agent->gpus, agent->facts);
    if (closer)
        closer_look_ask(agent_own(agent, closer_look));
    struct pulse_sources sources = {.crews = agent->crews,
                                    .lines = agent->lines,
                                    .look = closer ? agent_own(agent, closer_look) : NULL,
                                    .held = agent->pool.paused};
    answer_from(&sources, asked);
    if (agent->lines != NULL)
        worker_lines_ask(agent->lines, closer); /* the next pulse has the answers */
}

static void close_part(struct agent *agent)
{
    closer_look_destroy(agent_own(agent, closer_look));
}

static const struct ask_rule topics[] = {{&topic_pulse, answer}, {.topic = NULL}};
const struct agent_part closer_look_agent_part = {
    .name = "closer_look", .topics = topics, .close = close_part};
