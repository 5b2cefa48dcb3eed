/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/orders.h"

#include <stdio.h>

#include "agent/agent_end.h"
#include "agent/closer_look.h"
#include "agent/crew_orders.h"
#include "agent/evidence.h"
#include "agent/node_orders.h"
#include "agent/pulse.h"
#include "agent/state_desk.h"
#include "agent/usage.h"
#include "base/clock.h"

typedef void node_order(struct agent *agent, const struct frame_header *header,
                        const uint8_t *body);
typedef void crews_order(struct crews *crews, const struct frame_header *header,
                         const uint8_t *body);
typedef void crew_order(struct crew *crew, const struct frame_header *header, const uint8_t *body);

enum order_time { AT_ANY_TIME, ONCE, AFTER_WELCOME };

/* One of the three handlers. */
struct order {
    node_order *node;   /* for the whole node */
    crews_order *crews; /* for all crews, whatever their epoch */
    crew_order *crew;   /* for the crew of the header's epoch; without one the frame is stale */
    enum order_time when;
};

static void heartbeat_reply(struct agent *agent, const struct frame_header *header,
                            const uint8_t *body)
{
    (void)agent, (void)header, (void)body; /* orders_frame() notes that the driver was heard */
}

static void cancel(struct crews *crews, const struct frame_header *header, const uint8_t *body)
{
    (void)body;
    crews_cancel(crews, header->epoch);
}

static void state_request(struct agent *agent, const struct frame_header *header,
                          const uint8_t *body)
{
    Hvdrun__StateRequest *message = hvdrun__state_request__unpack(NULL, header->length, body);
    if (message == NULL) {
        agent_end_breach(agent, "STATE_REQUEST cannot be read");
        return;
    }
    if (agent->states == NULL)
        agent->states =
            state_desk_create(agent->loop, &agent->post, agent->helpers, agent->helper_program);
    state_desk_ask(agent->states, agent->crews, agent->lines, message->round, message->native);
    hvdrun__state_request__free_unpacked(message, NULL);
}

static void sample(struct agent *agent, const struct frame_header *header, const uint8_t *body)
{
    (void)header, (void)body;
    if (agent->usage == NULL)
        agent->usage = usage_create(agent->crews, &agent->post, agent->gpus);
    usage_report(agent->usage);
}

static void pulse_request(struct agent *agent, const struct frame_header *header,
                          const uint8_t *body)
{
    Hvdrun__PulseRequest *message = hvdrun__pulse_request__unpack(NULL, header->length, body);
    if (message == NULL) {
        agent_end_breach(agent, "PULSE_REQUEST cannot be read");
        return;
    }
    if (message->closer && agent->closer_look == NULL)
        agent->closer_look =
            closer_look_create(agent->loop, agent->crews, agent->gpus, agent->facts);
    if (message->closer)
        closer_look_ask(agent->closer_look);
    struct pulse_sources sources = {.crews = agent->crews,
                                    .lines = agent->lines,
                                    .look = message->closer ? agent->closer_look : NULL,
                                    .held = agent->pool.paused};
    pulse_report(&sources, &agent->post);
    if (agent->lines != NULL)
        worker_lines_ask(agent->lines, message->closer); /* the next report has the answers */
    hvdrun__pulse_request__free_unpacked(message, NULL);
}

static void evidence_request(struct agent *agent, const struct frame_header *header,
                             const uint8_t *body)
{
    Hvdrun__EvidenceRequest *message = hvdrun__evidence_request__unpack(NULL, header->length, body);
    if (message == NULL) {
        agent_end_breach(agent, "EVIDENCE_REQUEST cannot be read");
        return;
    }
    if (agent->evidence == NULL)
        agent->evidence =
            evidence_desk_create(agent->loop, agent->helpers, agent->helper_program, &agent->post);
    evidence_desk_ask(agent->evidence, agent->crews, message);
    hvdrun__evidence_request__free_unpacked(message, NULL);
}

static void end(struct agent *agent, const struct frame_header *header, const uint8_t *body)
{
    agent_end_order(agent, header->epoch, body, header->length);
}

static void quit(struct agent *agent, const struct frame_header *header, const uint8_t *body)
{
    (void)header, (void)body;
    agent_end_quit(agent);
}

static const struct order orders[] = {
    [FRAME_HEARTBEAT] = {.node = node_orders_heartbeat},
    [FRAME_HEARTBEAT_REPLY] = {.node = heartbeat_reply},
    [FRAME_WELCOME] = {.node = node_orders_welcome, .when = ONCE}, /* crews point to its values */
    [FRAME_PREPARE] = {.node = node_orders_prepare, .when = AFTER_WELCOME},
    [FRAME_EPOCH] = {.node = node_orders_epoch},
    [FRAME_SUSPEND] = {.node = node_orders_suspend},
    [FRAME_RESUME] = {.node = node_orders_resume},
    [FRAME_OUTPUT_CREDIT] = {.node = node_orders_credit},
    [FRAME_KV_REPLY] = {.node = node_orders_kv_reply},
    [FRAME_RANKS_ENDED] = {.node = node_orders_ranks_ended},
    [FRAME_NOTIFY] = {.node = node_orders_notify},
    [FRAME_DEADLINE] = {.node = node_orders_deadline},
    [FRAME_CHECK] = {.node = node_orders_check},
    [FRAME_PROBE] = {.node = node_orders_check},
    [FRAME_STATE_REQUEST] = {.node = state_request},
    [FRAME_SAMPLE] = {.node = sample},
    [FRAME_PULSE_REQUEST] = {.node = pulse_request},
    [FRAME_EVIDENCE_REQUEST] = {.node = evidence_request},
    [FRAME_END] = {.node = end},
    [FRAME_QUIT] = {.node = quit},
    [FRAME_CANCEL] = {.crews = cancel},
    [FRAME_SIGNAL] = {.crews = crew_orders_signal},
    [FRAME_WINDOW_SIZE] = {.crews = crew_orders_window},
    [FRAME_START] = {.crew = crew_orders_start},
    [FRAME_STDIN] = {.crew = crew_orders_stdin},
    [FRAME_END_WORKER] = {.crew = crew_orders_end_worker},
    [FRAME_MPI_COLLECTED] = {.crew = crew_orders_mpi},
    [FRAME_MPI_MODEX] = {.crew = crew_orders_mpi},
    [FRAME_MPI_MODEX_DATA] = {.crew = crew_orders_mpi},
    [FRAME_MPI_STORE_REPLY] = {.crew = crew_orders_mpi},
    [FRAME_MPI_EVENT] = {.crew = crew_orders_mpi},
    [FRAME_MPI_SIGNAL] = {.crew = crew_orders_mpi},
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

void orders_frame(struct agent *agent, const struct frame_header *header, const uint8_t *body)
{
    if (agent->quits)
        return;
    liveness_heard(&agent->liveness, clock_mono_ms());
    const struct order *order = find(header->type);
    const char *problem = breach(agent, order);
    if (problem != NULL) {
        char what[80];
        snprintf(what, sizeof(what), "%s %s", frame_name(header->type), problem);
        agent_end_breach(agent, what);
        return;
    }
    if (order->node != NULL)
        order->node(agent, header, body);
    if (order->crews != NULL)
        order->crews(agent->crews, header, body);
    struct crew *crew = order->crew != NULL ? crews_find(agent->crews, header->epoch) : NULL;
    if (crew != NULL)
        order->crew(crew, header, body);
}

void orders_refused(struct agent *agent, const char *why)
{
    log_error(&agent->post.log, "refused a message from the driver: %s", why);
}
