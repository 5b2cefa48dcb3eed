/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the workers of a node share, as parts of the agent: the rendezvous, the status endpoint, the
 * lines to libhvd, and the news about hosts. They are made for the first crew, and then serve all.
 * While older crews go on, EPOCH says when they leave their epoch.
 */
#include <string.h>

#include "agent/agent_state.h"
#include "agent/crew_config.h"
#include "agent/notifier.h"
#include "agent/progress_desk.h"
#include "agent/progress_door.h"
#include "agent/rendezvous_door.h"
#include "agent/worker_lines.h"
#include "line/line.h"

/* The rendezvous */

static void rendezvous_crew(struct agent *agent, struct crew_config *config,
                            const Hvdrun__Prepare *prepare, bool joins)
{
    struct error err = ERROR_INIT;
    struct rendezvous_door *door = agent_own(agent, rendezvous_door);
    if (door == NULL)
        door = rendezvous_door_create(agent->loop, &agent->post, &err);
    agent->own[AGENT_PART_rendezvous_door] = door;
    if (door == NULL) {
        log_warning(&agent->post.log, "no rendezvous for Horovod and no status endpoint: %s",
                    err.text);
        return;
    }
    if (prepare->first_seat == 0) /* not for a world that a rank has spawned */
        rendezvous_door_expect(door, prepare->size, prepare->local_size);
    if (!joins)
        rendezvous_door_begin(door, config->epoch);
    config->rendezvous_port = rendezvous_door_port(door);
}

static void rendezvous_epoch(struct agent *agent, uint32_t epoch)
{
    rendezvous_door_begin(agent_own(agent, rendezvous_door), epoch);
}

static void rendezvous_reply(struct agent *agent, const struct frame_header *header,
                             const void *body)
{
    (void)header;
    if (agent_own(agent, rendezvous_door) != NULL)
        rendezvous_door_reply(agent_own(agent, rendezvous_door), body);
}

static void rendezvous_close(struct agent *agent)
{
    rendezvous_door_destroy(agent_own(agent, rendezvous_door));
}

static const struct agent_order rendezvous_orders[] = {
    {FRAME_KV_REPLY, &hvdrun__kv_reply__descriptor, rendezvous_reply}, {0}};
const struct agent_part rendezvous_door_agent_part = {.name = "rendezvous_door",
                                                      .orders = rendezvous_orders,
                                                      .crew = rendezvous_crew,
                                                      .epoch = rendezvous_epoch,
                                                      .close = rendezvous_close};

/* What workers say of their progress, and the status endpoint, at the server of the rendezvous */

static bool has_seat(void *context, uint32_t epoch, uint32_t seat)
{
    const struct agent *agent = context;
    const struct crew *crew = crews_find(agent->crews, epoch);
    return crew != NULL && crew_has_seat(crew, seat);
}

static void progress_crew(struct agent *agent, struct crew_config *config,
                          const Hvdrun__Prepare *prepare, bool joins)
{
    struct rendezvous_door *rendezvous = agent_own(agent, rendezvous_door);
    (void)prepare, (void)joins;
    if (agent_own(agent, progress_desk) == NULL)
        agent->own[AGENT_PART_progress_desk] = progress_desk_create(agent->loop, &agent->post);
    config->progress_desk = agent_own(agent, progress_desk);
    config->progress_door = agent_own(agent, progress_door);
    if (config->progress_door != NULL || rendezvous == NULL)
        return;
    config->progress_door = progress_door_create(config->progress_desk, has_seat, agent);
    agent->own[AGENT_PART_progress_door] = config->progress_door;
    if (config->progress_door != NULL)
        rendezvous_door_posts(rendezvous, progress_door_post, config->progress_door);
}

static void progress_door_close(struct agent *agent)
{
    progress_door_destroy(agent_own(agent, progress_door));
}

static void progress_desk_close(struct agent *agent)
{
    progress_desk_destroy(agent_own(agent, progress_desk));
}

const struct agent_part progress_desk_agent_part = {.name = "progress_desk",
                                                    .close = progress_desk_close};
const struct agent_part progress_door_agent_part = {
    .name = "progress_door", .crew = progress_crew, .close = progress_door_close};

/* Lines */

static bool seat_of(void *context, pid_t session, uint32_t *seat)
{
    const struct agent *agent = context;
    return crews_seat_of(agent->crews, session, seat);
}

static void lines_crew(struct agent *agent, struct crew_config *config,
                       const Hvdrun__Prepare *prepare, bool joins)
{
    struct error err = ERROR_INIT;
    struct worker_lines *lines = agent_own(agent, worker_lines);
    (void)prepare;
    if (lines == NULL)
        lines = worker_lines_create(agent->loop, &agent->post, seat_of, agent, &err);
    agent->own[AGENT_PART_worker_lines] = lines;
    if (lines == NULL) {
        log_info(&agent->post.log, "no line to the workers: %s", err.text);
        return;
    }
    if (!joins)
        worker_lines_begin(lines, config->epoch);
    config->line_address = worker_lines_address(lines);
}

static void lines_epoch(struct agent *agent, uint32_t epoch)
{
    worker_lines_begin(agent_own(agent, worker_lines), epoch);
}

static void lines_ended(struct agent *agent, const struct frame_header *header, const void *body)
{
    if (agent_own(agent, worker_lines) != NULL)
        worker_lines_ended(agent_own(agent, worker_lines), header->epoch, body);
}

static void lines_close(struct agent *agent)
{
    worker_lines_destroy(agent_own(agent, worker_lines));
}

static const struct agent_order lines_orders[] = {
    {FRAME_RANKS_ENDED, &hvdrun__ranks_ended__descriptor, lines_ended}, {0}};
const struct agent_part worker_lines_agent_part = {.name = "worker_lines",
                                                   .orders = lines_orders,
                                                   .crew = lines_crew,
                                                   .epoch = lines_epoch,
                                                   .close = lines_close};

/* News about hosts */

static void notified(void *context, uint32_t seat, uint64_t timestamp, const char *problem)
{
    const struct agent *agent = context;
    Hvdrun__Notified message = HVDRUN__NOTIFIED__INIT;
    message.seat = seat;
    message.timestamp = timestamp;
    message.problem = (char *)(problem == NULL ? "" : problem); /* protobuf-c only reads it */
    post_message(&agent->post, FRAME_NOTIFIED, &message.base);
}

/* Such a worker has a line, and no service of its own. */
static bool registered_line(const Hvdrun__Notify *notify)
{
    return notify->registration.len == strlen(LINE_REGISTRATION) &&
           memcmp(notify->registration.data, LINE_REGISTRATION, notify->registration.len) == 0;
}

static void notifier_take(struct agent *agent, const struct frame_header *header, const void *body)
{
    const Hvdrun__Notify *message = body;
    struct worker_lines *lines = agent_own(agent, worker_lines);
    (void)header;
    if (agent_own(agent, notifier) == NULL)
        agent->own[AGENT_PART_notifier] = notifier_create(agent->loop, notified, agent);
    if (!registered_line(message)) {
        notifier_send(agent_own(agent, notifier), message->seat, message->timestamp,
                      (int)message->result, message->registration.data, message->registration.len);
        return;
    }
    bool sent = lines != NULL && worker_lines_hosts(lines, message->seat);
    notified(agent, message->seat, message->timestamp, sent ? NULL : "it has no line");
}

static void notifier_close(struct agent *agent)
{
    notifier_destroy(agent_own(agent, notifier));
}

static const struct agent_order notifier_orders[] = {
    {FRAME_NOTIFY, &hvdrun__notify__descriptor, notifier_take}, {0}};
const struct agent_part notifier_agent_part = {
    .name = "notifier", .orders = notifier_orders, .close = notifier_close};
