/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/run/run.h"

#include <signal.h>

#include "base/clock.h"
#include "driver/job/job_kind.h"
#include "driver/job/job_nodes.h"
#include "driver/job/part.h"
#include "driver/tell/events.h"
#include "output/terminal.h"

struct suspension {
    bool wanted; /* SUSPEND was sent; the launcher stops when all agents have answered */
};

/* Stops or restarts the time limits of the job, if a reason has come or gone. */
static void pause_limits(struct job *job)
{
    bool paused = job->times.suspended || job->times.debugged;
    if (paused == (job->times.paused_ms != 0))
        return;
    if (paused) {
        job->times.paused_ms = clock_mono_ms();
    } else {
        job->times.stood_still_ms += clock_mono_ms() - job->times.paused_ms;
        job->times.paused_ms = 0;
    }
    KIND_TELL(job, pause, paused);
    PARTS_TELL(job, pause, paused);
}

static void suspend_links(const struct job *job, bool suspended)
{
    for (int i = 0; i < job->node_count; i++)
        node_link_suspend(job->nodes[i], suspended);
}

/* All workers have stopped: now the launcher stops. */
static void stop_ourselves(struct job *job)
{
    job_part(job, suspension)->wanted = false;
    terminal_restore(job_part(job, terminal));
    int64_t since = clock_mono_ms();
    raise(SIGSTOP);
    loop_stood_still(job->loop, since); /* moves the limits of the transports too */
    terminal_raw_again(job_part(job, terminal));
}

static void look(struct job *job)
{
    if (!job_part(job, suspension)->wanted)
        return;
    for (int i = 0; i < job->node_count; i++) {
        if (node_link_alive(job->nodes[i]) && job->nodes[i]->suspends > 0)
            return;
    }
    stop_ourselves(job);
}

void suspension_begin(struct job *job)
{
    struct suspension *suspension = job_part(job, suspension);
    if (suspension->wanted)
        return;
    suspension->wanted = true;
    job->times.suspended = true;
    pause_limits(job);
    events_job(job, "job_suspended");
    suspend_links(job, true);
    for (int i = 0; i < job->node_count; i++)
        job->nodes[i]->suspends += node_link_alive(job->nodes[i]);
    job_send_all(job, FRAME_SUSPEND, NULL);
    look(job);
}

void suspension_end(struct job *job)
{
    job_part(job, suspension)->wanted = false;
    terminal_raw_again(
        job_part(job, terminal)); /* the job may have been continued in the background */
    suspend_links(job, false);
    job_send_all(job, FRAME_RESUME, NULL);
    job->times.suspended = false;
    pause_limits(job);
    events_job(job, "job_resumed");
}

void suspension_debugged(struct job *job, bool debugged)
{
    job->times.debugged = debugged;
    pause_limits(job);
}

/* SUSPENDED: an agent has stopped its workers. They may have been continued meanwhile. */
static int answered(struct job *job, struct node_link *node, const struct agent_frame *frame)
{
    (void)frame;
    if (node->suspends == 0)
        return 0; /* nobody has asked it */
    node->suspends--;
    look(job);
    return 0;
}

/* With its last agent a job ends, unless others may join it: nothing is left to continue. */
static bool ends(const struct job *job)
{
    bool waits = job->kind->many_epochs && job->state <= JOB_RUNNING;
    for (int i = 0; i < job->node_count && !waits; i++)
        waits = node_link_alive(job->nodes[i]);
    return !waits || job->state >= JOB_CLOSING;
}

static void look_again(void *context)
{
    struct job *job = context;
    if (job_part(job, suspension)->wanted && ends(job))
        suspension_end(job);
    else
        look(job);
}

/* It was perhaps the last one that had not answered. Others hear of its end first. */
static void node_closed(struct job *job, struct node_link *node)
{
    (void)node;
    if (job_part(job, suspension)->wanted)
        loop_defer(job->loop, look_again, job);
}

static const struct part_frame frames[] = {
    {FRAME_SUSPENDED, {answered, NULL, EPOCHS_ALL, NODE_STARTING, false}}, {0}};
const struct driver_part suspension_part = {.name = "suspension",
                                            .size = sizeof(struct suspension),
                                            .frames = frames,
                                            .node_closed = node_closed};
