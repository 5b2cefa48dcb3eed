/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/end/finish.h"

#include "base/clock.h"
#include "driver/end/orphans.h"
#include "driver/end/teardown.h"
#include "driver/end/verdict.h"
#include "driver/job/job_kind.h"
#include "driver/job/job_nodes.h"
#include "driver/job/part.h"
#include "node/runtime_dir.h"

#define CLOSE_WAIT_MS 5000   /* for agents to exit after QUIT */
#define ORPHANS_WAIT_MS 5000 /* for killing the processes of dead agents */

static void output_written(void *context)
{
    struct job *job = context;
    job->state = JOB_DONE;
    loop_stop(job->loop);
}

static void close_agents(struct job *job)
{
    Hvdrun__Quit message = HVDRUN__QUIT__INIT;
    message.over = true;
    message.status = (uint32_t)verdict_status_so_far(job);
    job->state = JOB_CLOSING;
    for (int i = 0; i < job->node_count; i++) {
        struct node_link *node = job->nodes[i];
        if (!node_link_alive(node))
            continue;
        node->state = NODE_CLOSING;
        node_link_send(node, FRAME_QUIT, job->epoch, &message.base);
    }
    teardown_expect_quit(job, CLOSE_WAIT_MS);
}

/* The verdict is made when nothing more can happen and all output has arrived. */
static void finish(struct job *job)
{
    teardown_over(job);
    job->state = JOB_FLUSHING;
    parts_over(job);
    kind_over(job);
    if (!orphans_end(job_part(job, orphans), ORPHANS_WAIT_MS))
        log_error(&job->log, "could not kill some processes of the job");
    if (job->lost_here)
        runtime_dir_sweep(); /* an agent may have died before it could name its folders */
    job->times.ended_ns = clock_mono_ns();
    verdict_make(job);
    output_flush(job->output, output_written, job);
}

static bool has_ended(const struct node_link *node)
{
    return node->state >= NODE_ENDED;
}

static bool has_closed(const struct node_link *node)
{
    return !node_link_alive(node);
}

void finish_advance(struct job *job)
{
    kind_advance(job);
    if (job->state == JOB_ENDING && job_all_nodes(job, has_ended))
        close_agents(job);
    if (job->state == JOB_CLOSING && job_all_nodes(job, has_closed) && !parts_busy(job))
        finish(job);
}
