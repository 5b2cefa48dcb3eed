/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/orders.h"

#include <stdio.h>
#include <stdlib.h>

#include "agent/agent_end.h"
#include "agent/crews.h"
#include "agent/node_orders.h"
#include "agent/parts.h"
#include "base/clock.h"
#include "base/mem.h"
#include "wire/control.pb-c.h"
#include "wire/frame.h"

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
    [FRAME_DEADLINE] = {.node = node_orders_deadline, MESSAGE(deadline)},
    [FRAME_ASK] = {.node = ask, MESSAGE(ask)},
    [FRAME_END] = {.node = end, MESSAGE(end)},
    [FRAME_QUIT] = {.node = quit, MESSAGE(quit)},
    [FRAME_CANCEL] = {.crews = cancel},
    [FRAME_SIGNAL] = {.crews = crew_orders_signal, MESSAGE(signal)},
    [FRAME_WINDOW_SIZE] = {.crews = crew_orders_window, MESSAGE(window_size)},
    [FRAME_START] = {.crew = crew_orders_start, MESSAGE(start)},
    [FRAME_STDIN] = {.crew = crew_orders_stdin},
    [FRAME_END_WORKER] = {.crew = crew_orders_end_worker, MESSAGE(end_worker)},
    [FRAME_MPI_COLLECTED] = {.node = mpi, MESSAGE(mpi_collected)},
    [FRAME_MPI_MODEX] = {.node = mpi, MESSAGE(mpi_modex)},
    [FRAME_MPI_MODEX_DATA] = {.node = mpi, MESSAGE(mpi_modex_data)},
    [FRAME_MPI_STORE_REPLY] = {.node = mpi, MESSAGE(mpi_store_reply)},
    [FRAME_MPI_EVENT] = {.node = mpi, MESSAGE(mpi_event)},
    [FRAME_SPAWNED] = {.node = mpi, MESSAGE(spawned)},
    [FRAME_MPI_SIGNAL] = {.node = mpi, MESSAGE(mpi_signal)},
};

/* Those of the table, and those that parts take. */
static struct order find(uint8_t type)
{
    bool known = type < sizeof(orders) / sizeof(orders[0]);
    const struct agent_order *of_part = agent_parts_order(type);
    if (of_part != NULL)
        return (struct order){.node = of_part->take, .message = of_part->message};
    return known ? orders[type] : (struct order){.node = NULL};
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

void orders_take(struct agent *agent, const struct frame_header *header, const uint8_t *body)
{
    if (agent->quits)
        return;
    const struct order order = find(header->type);
    const char *problem = breach(agent, &order);
    ProtobufCMessage *message = NULL;
    if (problem == NULL && order.message != NULL) {
        message = message_read(order.message, body, header->length);
        problem = message == NULL ? "cannot be read" : NULL;
    }
    if (problem != NULL) {
        char what[80];
        snprintf(what, sizeof(what), "%s %s", frame_name(header->type), problem);
        agent_end_breach(agent, what);
        return;
    }
    carry_out(agent, &order, header, order.message != NULL ? (const void *)message : body);
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
