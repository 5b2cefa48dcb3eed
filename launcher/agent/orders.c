/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/agent_state.h"

#include <signal.h>
#include <stdio.h>

#include "agent/departure.h"
#include "agent/ending.h"
#include "base/clock.h"
#include "base/mem.h"
#include "model/hosts/hosts.h"
#include "wire/control.pb-c.h"
#include "wire/frame.h"
#include "wire/packing.h"

/* Frames about the whole node: its place in the job, epochs, credit, suspension. */

static void node_welcome(struct agent *agent, const struct frame_header *header, const void *body)
{
    const Hvdrun__Welcome *message = body;
    (void)header;
    link_set_node(agent->link, message->node);
    agent->job_id = mem_strdup(message->job_id);
    agent->post.log.level = (enum log_level)message->log_level;
    agent->grace_ms = message->grace_ms;
    agent->drain_ms = message->drain_ms;
    liveness_init(&agent->liveness, LIVENESS_SUSPECT_MS, message->node_timeout_ms, clock_mono_ms());
    departure_welcome(agent->departure, message);
}

static void add_crew(struct agent *agent, uint32_t epoch, Hvdrun__Prepare *message)
{
    bool joins = crews_make_way(agent->crews) > 0;
    agent->post.epoch = epoch;
    struct crew_config config = {.loop = agent->loop,
                                 .post = &agent->post,
                                 .epoch = epoch,
                                 .pool = &agent->pool,
                                 .reaper = agent->reaper,
                                 .facts = agent->facts,
                                 .mpi = joins && message->elastic ? NULL : agent->mpi,
                                 .mask = agent->config->mask,
                                 .modules = agent->modules,
                                 .job_id = agent->job_id,
                                 .folder = agent->folder,
                                 .ready = HVDRUN__READY__INIT,
                                 .drain_ms = agent->drain_ms};
    agent->folder = NULL;
    agent_parts_adapt(agent, message);
    agent_parts_crew(agent, &config, message, joins);
    departure_inform(agent->departure, crews_add(agent->crews, &config, message));
}

/* Those that come packed (wire/packing.h). -1: they are not. */
static int expand_lists(Hvdrun__Prepare *message)
{
    if (text_runs_expand(&message->hosts, &message->n_hosts, HOSTS_MAX) < 0 ||
        text_runs_expand(&message->hostnames, &message->n_hostnames, HOSTS_MAX) < 0 ||
        text_runs_expand(&message->addresses, &message->n_addresses, HOSTS_MAX) < 0)
        return -1;
    return number_runs_expand(&message->host_ranks, &message->n_host_ranks, HOSTS_MAX);
}

/* Of the next epoch: after an end all anew, else beside the workers that go on. A world that a rank
 * has spawned does not touch the rendezvous and the lines of those. */
static void node_prepare(struct agent *agent, const struct frame_header *header, const void *body)
{
    Hvdrun__Prepare *message = hvdrun__prepare__unpack(NULL, header->length, body);
    if (message == NULL || expand_lists(message) < 0) {
        if (message != NULL)
            hvdrun__prepare__free_unpacked(message, NULL);
        agent_end_breach(agent, "PREPARE cannot be read");
        return;
    }
    if (agent->ended) {
        crews_clear(agent->crews);
        agent_end_anew(agent);
    }
    if (ending_is_idle(agent->ending) && crews_is_newer(agent->crews, header->epoch))
        add_crew(agent, header->epoch, message);
    else
        hvdrun__prepare__free_unpacked(message, NULL);
}

static void node_epoch(struct agent *agent, const struct frame_header *header, const void *body)
{
    (void)body;
    agent->post.epoch = header->epoch;
    crews_new_epoch(agent->crews);
    agent_parts_epoch(agent, header->epoch);
}

static void node_credit(struct agent *agent, const struct frame_header *header, const void *body)
{
    const Hvdrun__Credit *message = body;
    (void)header;
    if (message->bytes > agent->pool.granted)
        agent->pool.granted = message->bytes;
    stream_pool_resume(&agent->pool);
}

static void node_heartbeat(struct agent *agent, const struct frame_header *header, const void *body)
{
    Hvdrun__Heartbeat reply = *(const Hvdrun__Heartbeat *)body;
    (void)header;
    reply.reply_ns = (uint64_t)clock_mono_ns();
    post_message(&agent->post, FRAME_HEARTBEAT_REPLY, &reply.base);
}

/* The workers are in sessions of their own, where SIGTSTP has no effect: SIGSTOP has. */
static void node_suspend(struct agent *agent, const struct frame_header *header, const void *body)
{
    bool suspend = header->type == FRAME_SUSPEND;
    (void)body;
    liveness_suspend(&agent->liveness, suspend, clock_mono_ms());
    ending_pause(agent->ending, suspend);
    crews_pause(agent->crews, suspend);
    crews_signal(agent->crews, suspend ? SIGSTOP : SIGCONT);
    if (suspend)
        post_empty(&agent->post, FRAME_SUSPENDED);
}

static void node_deadline(struct agent *agent, const struct frame_header *header, const void *body)
{
    (void)header;
    departure_deadline(agent->departure, body);
}

/* Frames about workers. */

/* About one worker or one start: for the crew of the header's epoch. Without one they are stale. */
static void crew_of_start(struct agent *agent, const struct frame_header *header, const void *body)
{
    struct crew *crew = crews_find(agent->crews, header->epoch);
    if (crew != NULL)
        crew_start(crew, body);
}

static void crew_of_stdin(struct agent *agent, const struct frame_header *header, const void *body)
{
    struct crew *crew = crews_find(agent->crews, header->epoch);
    struct frame_data data;
    if (crew != NULL && frame_data_get(body, header->length, &data, NULL) == 0)
        crew_input(crew, &data, (const uint8_t *)body + FRAME_DATA_PREFIX,
                   header->length - FRAME_DATA_PREFIX);
}

static void crew_of_end(struct agent *agent, const struct frame_header *header, const void *body)
{
    struct crew *crew = crews_find(agent->crews, header->epoch);
    const Hvdrun__EndWorker *message = body;
    if (crew != NULL)
        crew_end_worker(crew, message->seat, message->signal, message->grace_ms);
}

/* Without seats, for all crews, whatever their epoch. */
static void node_signal(struct agent *agent, const struct frame_header *header, const void *body)
{
    const Hvdrun__Signal *message = body;
    struct crew *crew = message->n_seats > 0 ? crews_find(agent->crews, header->epoch) : NULL;
    if (message->n_seats == 0)
        crews_signal(agent->crews, message->signal);
    for (size_t i = 0; crew != NULL && i < message->n_seats; i++)
        crew_signal_seat(crew, message->seats[i], message->signal);
}

static void node_window(struct agent *agent, const struct frame_header *header, const void *body)
{
    const Hvdrun__WindowSize *message = body;
    (void)header;
    crews_resize(agent->crews, (int)message->rows, (int)message->columns);
}

/* `body` is the message that the order names, freed after the call, or the bytes. */
typedef void node_order(struct agent *agent, const struct frame_header *header, const void *body);

enum order_time { AT_ANY_TIME, ONCE, AFTER_WELCOME };

struct order {
    node_order *take;
    const ProtobufCMessageDescriptor *message;
    unsigned large; /* its field of bytes that are not copied; 0: none */
    enum order_time when;
};

static void heartbeat_reply(struct agent *agent, const struct frame_header *header,
                            const void *body)
{
    (void)agent, (void)header, (void)body; /* orders_frame() notes that the driver was heard */
}

static void cancel(struct agent *agent, const struct frame_header *header, const void *body)
{
    (void)body;
    crews_cancel(agent->crews, header->epoch);
}

static void ask(struct agent *agent, const struct frame_header *header, const void *body)
{
    (void)header;
    const char *problem = agent_parts_ask(agent, body);
    if (problem != NULL)
        agent_end_breach(agent, problem);
}

static void mpi(struct agent *agent, const struct frame_header *header, const void *body)
{
    struct crew *crew = crews_find(agent->crews, header->epoch);
    const char *problem = crew != NULL ? crew_mpi_frame(crew, header->type, body) : NULL;
    if (problem != NULL)
        agent_end_breach(agent, problem);
}

static void end(struct agent *agent, const struct frame_header *header, const void *body)
{
    agent_end_order(agent, header->epoch, body);
}

static void quit(struct agent *agent, const struct frame_header *header, const void *body)
{
    (void)header;
    agent_end_quit(agent, body);
}

#define MESSAGE(name) .message = &hvdrun__##name##__descriptor

static const struct order orders[] = {
    [FRAME_HEARTBEAT] = {.take = node_heartbeat, MESSAGE(heartbeat)},
    [FRAME_HEARTBEAT_REPLY] = {.take = heartbeat_reply},
    [FRAME_WELCOME] = {.take = node_welcome,
                       MESSAGE(welcome),
                       .when = ONCE}, /* crews point to its values */
    [FRAME_PREPARE] = {.take = node_prepare, .when = AFTER_WELCOME},
    [FRAME_EPOCH] = {.take = node_epoch},
    [FRAME_SUSPEND] = {.take = node_suspend},
    [FRAME_RESUME] = {.take = node_suspend},
    [FRAME_OUTPUT_CREDIT] = {.take = node_credit, MESSAGE(credit)},
    [FRAME_DEADLINE] = {.take = node_deadline, MESSAGE(deadline)},
    [FRAME_ASK] = {.take = ask, MESSAGE(ask)},
    [FRAME_END] = {.take = end, MESSAGE(end)},
    [FRAME_QUIT] = {.take = quit, MESSAGE(quit)},
    [FRAME_CANCEL] = {.take = cancel},
    [FRAME_SIGNAL] = {.take = node_signal, MESSAGE(signal)},
    [FRAME_WINDOW_SIZE] = {.take = node_window, MESSAGE(window_size)},
    [FRAME_START] = {.take = crew_of_start, MESSAGE(start)},
    [FRAME_STDIN] = {.take = crew_of_stdin},
    [FRAME_END_WORKER] = {.take = crew_of_end, MESSAGE(end_worker)},
    [FRAME_MPI_COLLECTED] = {.take = mpi, MESSAGE(mpi_collected), .large = 4},
    [FRAME_MPI_MODEX] = {.take = mpi, MESSAGE(mpi_modex)},
    [FRAME_MPI_MODEX_DATA] = {.take = mpi, MESSAGE(mpi_modex_data), .large = 4},
    [FRAME_MPI_STORE_REPLY] = {.take = mpi, MESSAGE(mpi_store_reply)},
    [FRAME_MPI_EVENT] = {.take = mpi, MESSAGE(mpi_event)},
    [FRAME_SPAWNED] = {.take = mpi, MESSAGE(spawned)},
    [FRAME_MPI_SIGNAL] = {.take = mpi, MESSAGE(mpi_signal)},
};

/* Those of the table, and those that parts take. */
static struct order find(uint8_t type)
{
    bool known = type < sizeof(orders) / sizeof(orders[0]);
    const struct agent_order *of_part = agent_parts_order(type);
    if (of_part != NULL)
        return (struct order){.take = of_part->take, .message = of_part->message};
    return known ? orders[type] : (struct order){.take = NULL};
}

/* NULL: the frame may come now. */
static const char *breach(const struct agent *agent, const struct order *order)
{
    if (order->take == NULL)
        return "is not for an agent";
    bool welcomed = agent->job_id != NULL;
    if (order->when == ONCE && welcomed)
        return "came twice";
    return order->when == AFTER_WELCOME && !welcomed ? "before WELCOME" : NULL;
}

void orders_take(struct agent *agent, const struct frame_header *header, const uint8_t *body)
{
    if (agent->quits)
        return;
    const struct order order = find(header->type);
    const char *problem = breach(agent, &order);
    ProtobufCMessage *message = NULL;
    ProtobufCBinaryData *borrowed = NULL;
    if (problem == NULL && order.message != NULL) {
        message = message_borrow(order.message, body, header->length, order.large, &borrowed);
        problem = message == NULL ? "cannot be read" : NULL;
    }
    if (problem != NULL) {
        char what[80];
        snprintf(what, sizeof(what), "%s %s", frame_name(header->type), problem);
        agent_end_breach(agent, what);
        return;
    }
    order.take(agent, header, order.message != NULL ? (const void *)message : body);
    if (borrowed != NULL)
        borrowed->data = NULL;
    message_free(message);
}

void orders_frame(struct agent *agent, const struct frame_header *header, const uint8_t *body)
{
    if (!agent->quits)
        liveness_heard(&agent->liveness, clock_mono_ms());
    orders_take(agent, header, body);
}

void orders_refused(struct agent *agent, const char *why)
{
    log_error(&agent->post.log, "refused a message from the driver: %s", why);
}
