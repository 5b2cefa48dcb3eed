/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/agent_state.h"

#include <signal.h>
#include <stdio.h>

#include "agent/departure.h"
#include "agent/ending.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/plain.h"
#include "base/status.h"

static void stop_now(void *context)
{
    loop_stop(context);
}

/* After what is deferred already: a link that was destroyed in this turn is freed there. */
static void leave(struct agent *agent)
{
    loop_defer(agent->loop, stop_now, agent->loop);
}

void agent_end_check(struct agent *agent)
{
    if (!agent->processes_gone || agent->ended)
        return;
    if (!crews_is_finished(agent->crews))
        return;
    agent->ended = true;
    departure_resume(agent->departure);
    agent->post.epoch = agent->end_epoch;
    post_empty(&agent->post, FRAME_ENDED);
    if (agent->link == NULL)
        leave(agent);
}

void agent_end_driver_lost(struct agent *agent)
{
    if (agent->link == NULL)
        return;
    if (agent->config->ends_as_job && !agent->quits) {
        agent->status = STATUS_LAUNCHER;
        fprintf(stderr, "hvdrun-agent: lost the connection to hvdrun, and ends the workers\n");
    }
    link_destroy(agent->link);
    agent->link = NULL;
    agent->post.link = NULL;
    if (agent->ended) {
        leave(agent);
        return;
    }
    departure_pause(agent->departure);
    crews_stop(agent->crews);
    crews_pause(agent->crews, false);
    stream_pool_resume(&agent->pool); /* no worker may block on output while it ends */
    ending_pause(agent->ending, false);
    ending_begin(agent->ending, SIGTERM, agent->grace_ms);
}

void agent_end_driver_silent(struct agent *agent, int64_t silence_ms)
{
    if (agent->link == NULL)
        return;
    Hvdrun__Farewell message = HVDRUN__FAREWELL__INIT;
    message.silence_ms = silence_ms < UINT32_MAX ? (uint32_t)silence_ms : UINT32_MAX;
    post_message(&agent->post, FRAME_FAREWELL, &message.base);
    link_flush(agent->link);
    agent_end_driver_lost(agent);
}

void agent_end_breach(struct agent *agent, const char *what)
{
    if (agent->link == NULL) /* a frame behind the one that broke it */
        return;
    log_error(&agent->post.log, "the driver broke the protocol: %s", what);
    link_flush(agent->link);
    agent_end_driver_lost(agent);
}

static void ending_signal(void *context, int signal)
{
    const struct agent *agent = context;
    crews_signal(agent->crews, signal);
}

static bool ending_is_worker_group(void *context, pid_t group)
{
    const struct agent *agent = context;
    uint32_t seat; /* a worker leads its session and its group */
    return crews_seat_of(agent->crews, group, &seat);
}

static int ending_live(void *context)
{
    const struct agent *agent = context;
    return crews_live(agent->crews);
}

static void ending_collect(void *context)
{
    const struct agent *agent = context;
    reaper_collect(agent->reaper);
}

static void ending_gone(void *context, const char *held)
{
    struct agent *agent = context;
    if (held != NULL) {
        Hvdrun__Unkilled message = HVDRUN__UNKILLED__INIT;
        message.what = (char *)held; /* protobuf-c only reads it */
        post_message(&agent->post, FRAME_UNKILLED, &message.base);
    }
    agent->processes_gone = true;
    crews_cut(agent->crews);
    agent_end_check(agent);
}

void agent_end_anew(struct agent *agent)
{
    ending_reset(agent->ending);
    agent->processes_gone = false;
    agent->ended = false;
}

void agent_end_order(struct agent *agent, uint32_t epoch, const Hvdrun__End *message)
{
    if (agent->ended)
        agent_end_anew(agent); /* each END is answered: that of the job may follow an epoch's */
    agent->end_epoch = epoch;
    agent->post.epoch = epoch; /* it may come before any PREPARE */
    departure_pause(agent->departure);
    crews_stop(agent->crews);
    if (ending_is_idle(agent->ending)) {
        /* What exits from this moment on may do so because of us. What has ended did not. */
        reaper_collect(agent->reaper);
        Hvdrun__Killing killing = HVDRUN__KILLING__INIT;
        killing.when_ns = (uint64_t)clock_mono_ns();
        post_message(&agent->post, FRAME_KILLING, &killing.base);
    }
    ending_begin(agent->ending, message->signal, message->grace_ms);
}

/* An agent that was asked to leave has not done all that it was started for. */
static int final_status(const struct agent *agent, const Hvdrun__Quit *message)
{
    if (message->refused[0] != '\0') {
        char *why AUTO_FREE = mem_strdup(message->refused);
        plain_line(why, '?');
        fprintf(stderr, "hvdrun-agent: hvdrun does not take this host: %s\n", why);
    }
    if (!message->over)
        return agent->terminated ? 128 + SIGTERM : 0;
    return message->status <= UINT8_MAX ? (int)message->status : STATUS_LAUNCHER;
}

/* After ENDED, or before there was any worker. A driver that sends it at another time wants no more
 * of us: the workers, and what they have left running, are ended as when it is lost. */
void agent_end_quit(struct agent *agent, const Hvdrun__Quit *message)
{
    agent->quits = true;
    if (agent->config->ends_as_job)
        agent->status = final_status(agent, message);
    if (crews_live(agent->crews) > 0 || (!agent->ended && reaper_has_children()))
        agent_end_driver_lost(agent);
    else
        leave(agent);
}

struct ending *agent_end_create(struct agent *agent)
{
    static const struct ending_ops ops = {.signal = ending_signal,
                                          .is_worker_group = ending_is_worker_group,
                                          .live = ending_live,
                                          .collect = ending_collect,
                                          .gone = ending_gone};
    return ending_create(agent->loop, agent->helpers, &ops, agent);
}
