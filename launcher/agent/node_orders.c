/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node_orders.h"

#include <signal.h>
#include <string.h>

#include "agent/agent_end.h"
#include "agent/departure.h"
#include "agent/ending.h"
#include "agent/notifier.h"
#include "agent/progress_door.h"
#include "agent/rendezvous_door.h"
#include "agent/worker_lines.h"
#include "base/clock.h"
#include "base/mem.h"
#include "line/line.h"

void node_orders_welcome(struct agent *agent, const struct frame_header *header, const void *body)
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

/* The rendezvous of the node: made when the first crew wants it, and then for all. While older
 * crews are there, EPOCH says when it leaves their epoch. */
static void open_rendezvous(struct agent *agent, uint32_t epoch, const Hvdrun__Prepare *message,
                            bool joins)
{
    struct error err = ERROR_INIT;
    if (agent->rendezvous == NULL) {
        agent->rendezvous = rendezvous_door_create(agent->loop, &agent->post, &err);
        if (agent->rendezvous == NULL)
            log_warning(&agent->post.log, "no rendezvous for Horovod and no status endpoint: %s",
                        err.text);
    }
    if (agent->rendezvous != NULL)
        rendezvous_door_expect(agent->rendezvous, message->size, message->local_size);
    if (agent->rendezvous != NULL && !joins)
        rendezvous_door_begin(agent->rendezvous, epoch);
}

static bool seat_of(void *context, pid_t session, uint32_t *seat)
{
    const struct agent *agent = context;
    return crews_seat_of(agent->crews, session, seat);
}

static bool has_seat(void *context, uint32_t epoch, uint32_t seat)
{
    const struct agent *agent = context;
    const struct crew *crew = crews_find(agent->crews, epoch);
    return crew != NULL && crew_has_seat(crew, seat);
}

/* The status endpoint is at the server of the rendezvous. */
static void open_progress(struct agent *agent)
{
    if (agent->rendezvous == NULL || agent->progress_door != NULL)
        return;
    agent->progress_door = progress_door_create(agent->progress_desk, has_seat, agent);
    if (agent->progress_door != NULL)
        rendezvous_door_posts(agent->rendezvous, progress_door_post, agent->progress_door);
}

/* The lines of the node, likewise. */
static void open_lines(struct agent *agent, uint32_t epoch, bool joins)
{
    struct error err = ERROR_INIT;
    if (agent->lines == NULL) {
        agent->lines = worker_lines_create(agent->loop, &agent->post, seat_of, agent, &err);
        if (agent->lines == NULL)
            log_info(&agent->post.log, "no line to the workers: %s", err.text);
    }
    if (agent->lines != NULL && !joins)
        worker_lines_begin(agent->lines, epoch);
}

static void add_crew(struct agent *agent, uint32_t epoch, Hvdrun__Prepare *message)
{
    bool joins = crews_make_way(agent->crews) > 0;
    agent->post.epoch = epoch;
    open_rendezvous(agent, epoch, message, joins);
    open_progress(agent);
    open_lines(agent, epoch, joins);
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
        .rendezvous_port = agent->rendezvous == NULL ? 0 : rendezvous_door_port(agent->rendezvous),
        .line_address = agent->lines == NULL ? NULL : worker_lines_address(agent->lines),
        .progress_desk = agent->progress_desk,
        .progress_door = agent->progress_door};
    departure_inform(agent->departure, crews_add(agent->crews, &config, message));
}

/* Of the next epoch: after an end all anew, else beside the workers that go on. */
void node_orders_prepare(struct agent *agent, const struct frame_header *header, const void *body)
{
    Hvdrun__Prepare *message = hvdrun__prepare__unpack(NULL, header->length, body);
    if (message == NULL) {
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

void node_orders_epoch(struct agent *agent, const struct frame_header *header, const void *body)
{
    (void)body;
    agent->post.epoch = header->epoch;
    if (agent->rendezvous != NULL)
        rendezvous_door_begin(agent->rendezvous, header->epoch);
    if (agent->lines != NULL)
        worker_lines_begin(agent->lines, header->epoch);
}

void node_orders_credit(struct agent *agent, const struct frame_header *header, const void *body)
{
    const Hvdrun__Credit *message = body;
    (void)header;
    if (message->bytes > agent->pool.granted)
        agent->pool.granted = message->bytes;
    stream_pool_resume(&agent->pool);
}

void node_orders_heartbeat(struct agent *agent, const struct frame_header *header, const void *body)
{
    Hvdrun__Heartbeat reply = *(const Hvdrun__Heartbeat *)body;
    (void)header;
    reply.reply_ns = (uint64_t)clock_mono_ns();
    post_message(&agent->post, FRAME_HEARTBEAT_REPLY, &reply.base);
}

/* The workers are in sessions of their own, where SIGTSTP has no effect: SIGSTOP has. */
static void suspend_job(struct agent *agent, bool suspend)
{
    liveness_suspend(&agent->liveness, suspend, clock_mono_ms());
    ending_pause(agent->ending, suspend);
    crews_pause(agent->crews, suspend);
    crews_signal(agent->crews, suspend ? SIGSTOP : SIGCONT);
    if (suspend)
        post_empty(&agent->post, FRAME_SUSPENDED);
}

void node_orders_suspend(struct agent *agent, const struct frame_header *header, const void *body)
{
    (void)header, (void)body;
    suspend_job(agent, true);
}

void node_orders_resume(struct agent *agent, const struct frame_header *header, const void *body)
{
    (void)header, (void)body;
    suspend_job(agent, false);
}

/* The worker has a line, and no service of its own. */
static void notify_over_line(struct agent *agent, const Hvdrun__Notify *notify)
{
    bool sent = agent->lines != NULL && worker_lines_hosts(agent->lines, notify->seat);
    Hvdrun__Notified message = HVDRUN__NOTIFIED__INIT;
    message.seat = notify->seat;
    message.timestamp = notify->timestamp;
    message.problem = (char *)(sent ? "" : "it has no line"); /* protobuf-c only reads it */
    post_message(&agent->post, FRAME_NOTIFIED, &message.base);
}

static bool registered_line(const Hvdrun__Notify *notify)
{
    return notify->registration.len == strlen(LINE_REGISTRATION) &&
           memcmp(notify->registration.data, LINE_REGISTRATION, notify->registration.len) == 0;
}

void node_orders_notify(struct agent *agent, const struct frame_header *header, const void *body)
{
    const Hvdrun__Notify *message = body;
    (void)header;
    if (registered_line(message))
        notify_over_line(agent, message);
    else
        notifier_send(agent->notifier, message->seat, message->timestamp, (int)message->result,
                      message->registration.data, message->registration.len);
}

void node_orders_kv_reply(struct agent *agent, const struct frame_header *header, const void *body)
{
    (void)header;
    if (agent->rendezvous != NULL)
        rendezvous_door_reply(agent->rendezvous, body);
}

void node_orders_deadline(struct agent *agent, const struct frame_header *header, const void *body)
{
    (void)header;
    departure_deadline(agent->departure, body);
}

void node_orders_ranks_ended(struct agent *agent, const struct frame_header *header,
                             const void *body)
{
    if (agent->lines != NULL)
        worker_lines_ended(agent->lines, header->epoch, body);
}
