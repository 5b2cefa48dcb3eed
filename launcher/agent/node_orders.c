/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node_orders.h"

#include <signal.h>

#include "agent/agent_end.h"
#include "agent/check.h"
#include "agent/departure.h"
#include "agent/ending.h"
#include "agent/notifier.h"
#include "agent/orders.h"
#include "agent/rendezvous_door.h"
#include "base/clock.h"
#include "base/mem.h"

void node_orders_refused(struct agent *agent, const char *why)
{
    log_error(&agent->post.log, "what came from the launcher is refused: %s", why);
}

/* The order of frames is part of the protocol: a peer that breaks it is not our driver. */
static void driver_is_wrong(struct agent *agent, const char *what)
{
    log_error(&agent->post.log, "the launcher broke the protocol: %s", what);
    link_flush(agent->link);
    agent_end_driver_lost(agent);
}

/* Once: crews point to what it says. */
static void on_welcome(struct agent *agent, const uint8_t *body, size_t length)
{
    Hvdrun__Welcome *message = hvdrun__welcome__unpack(NULL, length, body);
    if (message == NULL || agent->job_id != NULL) {
        driver_is_wrong(agent, message == NULL ? "WELCOME is unreadable" : "WELCOME came twice");
        if (message != NULL)
            hvdrun__welcome__free_unpacked(message, NULL);
        return;
    }
    link_set_node(agent->link, message->node);
    agent->job_id = mem_strdup(message->job_id);
    agent->post.log.level = (enum log_level)message->log_level;
    agent->grace_ms = message->grace_ms;
    agent->drain_ms = message->drain_ms;
    liveness_init(&agent->liveness, LIVENESS_SUSPECT_MS, message->node_timeout_ms, clock_mono_ms());
    departure_welcome(agent->departure, message);
    hvdrun__welcome__free_unpacked(message, NULL);
}

/* The rendezvous of the node: made when the first crew wants it, and then for all. While older
 * crews are there, EPOCH says when it leaves their epoch. */
static void open_rendezvous(struct agent *agent, uint32_t epoch, const Hvdrun__Prepare *message,
                            bool joins)
{
    struct error err = ERROR_INIT;
    if (agent->rendezvous == NULL) {
        agent->rendezvous = rendezvous_door_create(agent->loop, &agent->post, &err);
        if (agent->rendezvous == NULL)
            log_warning(&agent->post.log, "no rendezvous for Horovod: %s", err.text);
    }
    if (agent->rendezvous != NULL)
        rendezvous_door_expect(agent->rendezvous, message->size, message->local_size);
    if (agent->rendezvous != NULL && !joins)
        rendezvous_door_begin(agent->rendezvous, epoch);
}

static void add_crew(struct agent *agent, uint32_t epoch, Hvdrun__Prepare *message)
{
    bool joins = crews_make_way(agent->crews) > 0;
    agent->post.epoch = epoch;
    if (!message->mpi_controller)
        open_rendezvous(agent, epoch, message, joins);
    struct crew_config config = {
        .loop = agent->loop,
        .post = &agent->post,
        .epoch = epoch,
        .pool = &agent->pool,
        .reaper = agent->reaper,
        .facts = agent->facts,
        .mpi = joins ? NULL : agent->mpi,
        .mask = agent->config->mask,
        .modules = agent->modules,
        .job_id = agent->job_id,
        .drain_ms = agent->drain_ms,
        .rendezvous_port = agent->rendezvous == NULL ? 0 : rendezvous_door_port(agent->rendezvous)};
    departure_inform(agent->departure, crews_add(agent->crews, &config, message));
}

/* Of the next epoch: after an end all anew, else beside the workers that go on. */
static void on_prepare(struct agent *agent, uint32_t epoch, const uint8_t *body, size_t length)
{
    Hvdrun__Prepare *message = hvdrun__prepare__unpack(NULL, length, body);
    if (message == NULL || agent->job_id == NULL) {
        driver_is_wrong(agent,
                        message == NULL ? "PREPARE is unreadable" : "PREPARE before WELCOME");
        if (message != NULL)
            hvdrun__prepare__free_unpacked(message, NULL);
        return;
    }
    if (agent->ended) {
        crews_clear(agent->crews);
        agent_end_anew(agent);
    }
    if (ending_is_idle(agent->ending) && crews_is_newer(agent->crews, epoch))
        add_crew(agent, epoch, message);
    else
        hvdrun__prepare__free_unpacked(message, NULL);
}

static void on_epoch(struct agent *agent, uint32_t epoch)
{
    agent->post.epoch = epoch;
    if (agent->rendezvous != NULL)
        rendezvous_door_begin(agent->rendezvous, epoch);
}

static void on_credit(struct agent *agent, const uint8_t *body, size_t length)
{
    Hvdrun__Credit *message = hvdrun__credit__unpack(NULL, length, body);
    if (message == NULL)
        return;
    if (message->bytes > agent->pool.granted)
        agent->pool.granted = message->bytes;
    hvdrun__credit__free_unpacked(message, NULL);
    stream_pool_resume(&agent->pool);
}

static void on_heartbeat(struct agent *agent, const uint8_t *body, size_t length)
{
    Hvdrun__Heartbeat *message = hvdrun__heartbeat__unpack(NULL, length, body);
    if (message == NULL)
        return;
    message->reply_ns = (uint64_t)clock_mono_ns();
    post_message(&agent->post, FRAME_HEARTBEAT_REPLY, &message->base);
    hvdrun__heartbeat__free_unpacked(message, NULL);
}

/* The workers are in sessions of their own, where SIGTSTP has no effect: SIGSTOP has. */
static void on_suspend(struct agent *agent, bool suspend)
{
    liveness_suspend(&agent->liveness, suspend, clock_mono_ms());
    ending_pause(agent->ending, suspend);
    crews_pause(agent->crews, suspend);
    crews_signal(agent->crews, suspend ? SIGSTOP : SIGCONT);
    if (suspend)
        post_empty(&agent->post, FRAME_SUSPENDED);
}

static void on_notify(struct agent *agent, const uint8_t *body, size_t length)
{
    Hvdrun__Notify *message = hvdrun__notify__unpack(NULL, length, body);
    if (message == NULL)
        return;
    notifier_send(agent->notifier, message->seat, message->timestamp, (int)message->result,
                  message->registration.data, message->registration.len);
    hvdrun__notify__free_unpacked(message, NULL);
}

static void on_check(struct agent *agent, const struct frame_header *header, const uint8_t *body)
{
    if (agent->check == NULL)
        agent->check = check_create(agent->loop, &agent->post, agent->facts, agent->modules);
    check_frame(agent->check, header->type, body, header->length);
}

/* Frames that are not the liveness', nor about certain workers. */
static bool node_frame(struct agent *agent, const struct frame_header *header, const uint8_t *body)
{
    size_t length = header->length;
    switch (header->type) {
    case FRAME_WELCOME: on_welcome(agent, body, length); break;
    case FRAME_PREPARE: on_prepare(agent, header->epoch, body, length); break;
    case FRAME_EPOCH: on_epoch(agent, header->epoch); break;
    case FRAME_OUTPUT_CREDIT: on_credit(agent, body, length); break;
    case FRAME_NOTIFY: on_notify(agent, body, length); break;
    case FRAME_DEADLINE: departure_deadline(agent->departure, body, length); break;
    case FRAME_END: agent_end_order(agent, header->epoch, body, length); break;
    case FRAME_QUIT: agent_end_quit(agent); break;
    case FRAME_CHECK:
    case FRAME_PROBE: on_check(agent, header, body); break;
    case FRAME_KV_REPLY:
        if (agent->rendezvous != NULL)
            rendezvous_door_reply(agent->rendezvous, body, length);
        break;
    default: return false;
    }
    return true;
}

void node_orders_frame(struct agent *agent, const struct frame_header *header, const uint8_t *body)
{
    if (agent->quits)
        return;
    liveness_heard(&agent->liveness, clock_mono_ms());
    switch (header->type) {
    case FRAME_HEARTBEAT: on_heartbeat(agent, body, header->length); break;
    case FRAME_SUSPEND: on_suspend(agent, true); break;
    case FRAME_RESUME: on_suspend(agent, false); break;
    default:
        if (!node_frame(agent, header, body))
            orders_frame(agent->crews, &agent->post, header, body);
        break;
    }
}
