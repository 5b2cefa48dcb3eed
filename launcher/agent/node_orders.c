/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node_orders.h"

#include <signal.h>

#include "agent/agent_end.h"
#include "agent/departure.h"
#include "agent/ending.h"
#include "agent/parts.h"
#include "base/clock.h"
#include "base/mem.h"
#include "model/hosts/hosts.h"
#include "wire/runs.h"

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
                                 .ready = HVDRUN__READY__INIT,
                                 .drain_ms = agent->drain_ms};
    agent_parts_adapt(agent, message);
    agent_parts_crew(agent, &config, message, joins);
    departure_inform(agent->departure, crews_add(agent->crews, &config, message));
}

/* Those that come packed (wire/runs.h). -1: they are not. */
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
void node_orders_prepare(struct agent *agent, const struct frame_header *header, const void *body)
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

void node_orders_epoch(struct agent *agent, const struct frame_header *header, const void *body)
{
    (void)body;
    agent->post.epoch = header->epoch;
    agent_parts_epoch(agent, header->epoch);
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

void node_orders_deadline(struct agent *agent, const struct frame_header *header, const void *body)
{
    (void)header;
    departure_deadline(agent->departure, body);
}
