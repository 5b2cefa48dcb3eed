/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/orders.h"

#include <stdio.h>
#include <stdlib.h>

#include "agent/agent_end.h"
#include "agent/ask.h"
#include "agent/check.h"
#include "agent/closer_look.h"
#include "agent/crews.h"
#include "agent/evidence.h"
#include "agent/node_orders.h"
#include "agent/state_desk.h"
#include "agent/usage.h"
#include "base/clock.h"
#include "base/mem.h"
#include "node/activity.h"
#include "node/proc_state.h"
#include "wire/control.pb-c.h"
#include "wire/frame.h"

/* Answers about the topic "pulse": what the workers of this node have used so far, so that the
 * driver sees whether they work. */

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

static void pulse_ask(const struct pulse_sources *sources, const struct asked *asked)
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

/*
 * The driver's frames about workers. What `body` is, the table of agent/orders.c says.
 */

/* About one worker or one start: for the crew of the header's epoch. */
static void crew_orders_start(struct crew *crew, const struct frame_header *header,
                              const void *body)
{
    (void)header;
    crew_start(crew, body);
}

static void crew_orders_stdin(struct crew *crew, const struct frame_header *header,
                              const void *body)
{
    struct frame_data data;
    if (frame_data_get(body, header->length, &data, NULL) == 0)
        crew_input(crew, &data, (const uint8_t *)body + FRAME_DATA_PREFIX,
                   header->length - FRAME_DATA_PREFIX);
}

static void crew_orders_end_worker(struct crew *crew, const struct frame_header *header,
                                   const void *body)
{
    const Hvdrun__EndWorker *message = body;
    (void)header;
    crew_end_worker(crew, message->seat, message->signal, message->grace_ms);
}

static void crew_orders_mpi(struct crew *crew, const struct frame_header *header, const void *body)
{
    crew_mpi_frame(crew, header->type, body);
}

/* For all crews, whatever their epoch. */
static void crew_orders_signal(struct crews *crews, const struct frame_header *header,
                               const void *body)
{
    const Hvdrun__Signal *message = body;
    struct crew *crew = message->n_seats > 0 ? crews_find(crews, header->epoch) : NULL;
    if (message->n_seats == 0)
        crews_signal(crews, message->signal);
    for (size_t i = 0; crew != NULL && i < message->n_seats; i++)
        crew_signal_seat(crew, message->seats[i], message->signal);
}

static void crew_orders_window(struct crews *crews, const struct frame_header *header,
                               const void *body)
{
    const Hvdrun__WindowSize *message = body;
    (void)header;
    crews_resize(crews, (int)message->rows, (int)message->columns);
}

/* `body` is the message that the order names, freed after the call, or the bytes. */
typedef void node_order(struct agent *agent, const struct frame_header *header, const void *body);
typedef void crews_order(struct crews *crews, const struct frame_header *header, const void *body);
typedef void crew_order(struct crew *crew, const struct frame_header *header, const void *body);

enum order_time { AT_ANY_TIME, ONCE, AFTER_WELCOME };

/* One of the three handlers. */
struct order {
    node_order *node;   /* for the whole node */
    crews_order *crews; /* for all crews, whatever their epoch */
    crew_order *crew;   /* for the crew of the header's epoch; without one the frame is stale */
    const ProtobufCMessageDescriptor *message;
    enum order_time when;
};

static void heartbeat_reply(struct agent *agent, const struct frame_header *header,
                            const void *body)
{
    (void)agent, (void)header, (void)body; /* orders_frame() notes that the driver was heard */
}

static void cancel(struct crews *crews, const struct frame_header *header, const void *body)
{
    (void)body;
    crews_cancel(crews, header->epoch);
}

static void states(struct agent *agent, const struct asked *asked, const ProtobufCMessage *request)
{
    const Hvdrun__StateRequest *wanted = (const Hvdrun__StateRequest *)request;
    if (agent->states == NULL)
        agent->states = state_desk_create(agent->loop, agent->helpers, agent->helper_program);
    state_desk_ask(agent->states, agent->crews, agent->lines, asked, wanted->native);
}

static void usage(struct agent *agent, const struct asked *asked, const ProtobufCMessage *request)
{
    (void)request;
    if (agent->usage == NULL)
        agent->usage = usage_create(agent->crews, agent->gpus);
    usage_ask(agent->usage, asked);
}

static void pulse(struct agent *agent, const struct asked *asked, const ProtobufCMessage *request)
{
    bool closer = ((const Hvdrun__PulseRequest *)request)->closer;
    if (closer && agent->closer_look == NULL)
        agent->closer_look =
            closer_look_create(agent->loop, agent->crews, agent->gpus, agent->facts);
    if (closer)
        closer_look_ask(agent->closer_look);
    struct pulse_sources sources = {.crews = agent->crews,
                                    .lines = agent->lines,
                                    .look = closer ? agent->closer_look : NULL,
                                    .held = agent->pool.paused};
    pulse_ask(&sources, asked);
    if (agent->lines != NULL)
        worker_lines_ask(agent->lines, closer); /* the next pulse has the answers */
}

static void evidence(struct agent *agent, const struct asked *asked,
                     const ProtobufCMessage *request)
{
    if (agent->evidence == NULL)
        agent->evidence = evidence_desk_create(agent->loop, agent->helpers, agent->helper_program);
    evidence_desk_ask(agent->evidence, agent->crews, asked,
                      ((const Hvdrun__EvidenceRequest *)request)->file_bytes);
}

static struct check *check_of(struct agent *agent)
{
    if (agent->check == NULL)
        agent->check = check_create(agent->loop, agent->facts, agent->modules, agent->mpi);
    return agent->check;
}

static void facts(struct agent *agent, const struct asked *asked, const ProtobufCMessage *request)
{
    (void)request;
    check_facts(check_of(agent), asked);
}

static void probe(struct agent *agent, const struct asked *asked, const ProtobufCMessage *request)
{
    check_probe(check_of(agent), asked, (const Hvdrun__Probe *)request);
}

static void ask(struct agent *agent, const struct frame_header *header, const void *body)
{
    static const struct ask_rule rules[] = {
        {&topic_states, states}, {&topic_usage, usage},
        {&topic_pulse, pulse},   {&topic_evidence, evidence},
        {&topic_facts, facts},   {&topic_probe, probe},
        {.topic = NULL},
    };
    (void)header;
    const char *problem = asked_take(rules, agent, &agent->post, body);
    if (problem != NULL)
        agent_end_breach(agent, problem);
}

static void end(struct agent *agent, const struct frame_header *header, const void *body)
{
    agent_end_order(agent, header->epoch, body);
}

static void quit(struct agent *agent, const struct frame_header *header, const void *body)
{
    (void)header, (void)body;
    agent_end_quit(agent);
}

#define MESSAGE(name) .message = &hvdrun__##name##__descriptor

static const struct order orders[] = {
    [FRAME_HEARTBEAT] = {.node = node_orders_heartbeat, MESSAGE(heartbeat)},
    [FRAME_HEARTBEAT_REPLY] = {.node = heartbeat_reply},
    [FRAME_WELCOME] = {.node = node_orders_welcome,
                       MESSAGE(welcome),
                       .when = ONCE}, /* crews point to its values */
    [FRAME_PREPARE] = {.node = node_orders_prepare, .when = AFTER_WELCOME},
    [FRAME_EPOCH] = {.node = node_orders_epoch},
    [FRAME_SUSPEND] = {.node = node_orders_suspend},
    [FRAME_RESUME] = {.node = node_orders_resume},
    [FRAME_OUTPUT_CREDIT] = {.node = node_orders_credit, MESSAGE(credit)},
    [FRAME_KV_REPLY] = {.node = node_orders_kv_reply, MESSAGE(kv_reply)},
    [FRAME_RANKS_ENDED] = {.node = node_orders_ranks_ended, MESSAGE(ranks_ended)},
    [FRAME_NOTIFY] = {.node = node_orders_notify, MESSAGE(notify)},
    [FRAME_DEADLINE] = {.node = node_orders_deadline, MESSAGE(deadline)},
    [FRAME_ASK] = {.node = ask, MESSAGE(ask)},
    [FRAME_END] = {.node = end, MESSAGE(end)},
    [FRAME_QUIT] = {.node = quit},
    [FRAME_CANCEL] = {.crews = cancel},
    [FRAME_SIGNAL] = {.crews = crew_orders_signal, MESSAGE(signal)},
    [FRAME_WINDOW_SIZE] = {.crews = crew_orders_window, MESSAGE(window_size)},
    [FRAME_START] = {.crew = crew_orders_start, MESSAGE(start)},
    [FRAME_STDIN] = {.crew = crew_orders_stdin},
    [FRAME_END_WORKER] = {.crew = crew_orders_end_worker, MESSAGE(end_worker)},
    [FRAME_MPI_COLLECTED] = {.crew = crew_orders_mpi, MESSAGE(mpi_collected)},
    [FRAME_MPI_MODEX] = {.crew = crew_orders_mpi, MESSAGE(mpi_modex)},
    [FRAME_MPI_MODEX_DATA] = {.crew = crew_orders_mpi, MESSAGE(mpi_modex_data)},
    [FRAME_MPI_STORE_REPLY] = {.crew = crew_orders_mpi, MESSAGE(mpi_store_reply)},
    [FRAME_MPI_EVENT] = {.crew = crew_orders_mpi, MESSAGE(mpi_event)},
    [FRAME_MPI_SIGNAL] = {.crew = crew_orders_mpi, MESSAGE(mpi_signal)},
};

static const struct order *find(uint8_t type)
{
    static const struct order none = {.node = NULL};
    return type < sizeof(orders) / sizeof(orders[0]) ? &orders[type] : &none;
}

/* NULL: the frame may come now. */
static const char *breach(const struct agent *agent, const struct order *order)
{
    if (order->node == NULL && order->crews == NULL && order->crew == NULL)
        return "is not for an agent";
    bool welcomed = agent->job_id != NULL;
    if (order->when == ONCE && welcomed)
        return "came twice";
    return order->when == AFTER_WELCOME && !welcomed ? "before WELCOME" : NULL;
}

static void carry_out(struct agent *agent, const struct order *order,
                      const struct frame_header *header, const void *body)
{
    if (order->node != NULL)
        order->node(agent, header, body);
    if (order->crews != NULL)
        order->crews(agent->crews, header, body);
    struct crew *crew = order->crew != NULL ? crews_find(agent->crews, header->epoch) : NULL;
    if (crew != NULL)
        order->crew(crew, header, body);
}

void orders_frame(struct agent *agent, const struct frame_header *header, const uint8_t *body)
{
    if (agent->quits)
        return;
    liveness_heard(&agent->liveness, clock_mono_ms());
    const struct order *order = find(header->type);
    const char *problem = breach(agent, order);
    ProtobufCMessage *message = NULL;
    if (problem == NULL && order->message != NULL) {
        message = message_read(order->message, body, header->length);
        problem = message == NULL ? "cannot be read" : NULL;
    }
    if (problem != NULL) {
        char what[80];
        snprintf(what, sizeof(what), "%s %s", frame_name(header->type), problem);
        agent_end_breach(agent, what);
        return;
    }
    carry_out(agent, order, header, order->message != NULL ? (const void *)message : body);
    message_free(message);
}

void orders_refused(struct agent *agent, const char *why)
{
    log_error(&agent->post.log, "refused a message from the driver: %s", why);
}
