/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/reach/call_progress.h"

#include "base/buf.h"
#include "driver/job/part.h"

#define FIRST_MS 300
#define PERIOD_MS 200
#define LINE_MAX_BYTES 256

struct call_progress {
    struct loop_timer *timer;
};

static bool is_behind(const struct job *job, const struct node_link *node)
{
    return job->state == JOB_CONNECTING ? node->state <= NODE_STARTING : node->state < NODE_READY;
}

/* The host with the longest wait. Hosts are called in order, so it is the first one that has
 * begun and has not finished. */
static const struct node_link *slowest(const struct job *job)
{
    const struct node_link *found = NULL;
    for (int i = 0; i < job->node_count && found == NULL; i++) {
        const struct node_link *node = job->nodes[i];
        bool waits = node->state == NODE_CALLING && node->stage == STAGE_WAITING;
        if (is_behind(job, node) && !waits)
            found = node;
    }
    return found;
}

static void show(void *context)
{
    const struct job *job = context;
    if (job->state > JOB_PREPARING)
        return;
    AUTO_BUF struct buf line = BUF_INIT(LINE_MAX_BYTES);
    bool connecting = job->state == JOB_CONNECTING;
    buf_printf(&line, "%s %d/%d hosts", connecting ? "connecting" : "preparing",
               connecting ? job->nodes_up : job->nodes_ready, job->node_count);
    const struct node_link *behind = slowest(job);
    if (behind != NULL)
        buf_printf(&line, ", slowest: %.80s (%s)", behind->host,
                   connecting ? transport_stage_name(behind->stage) : "preparing");
    output_progress(job->output, buf_text(&line));
    loop_timer_set(job_part(job, call_progress)->timer, PERIOD_MS);
}

static int open_part(struct job *job, struct error *err)
{
    (void)err;
    job_part(job, call_progress)->timer = loop_timer_create(job->loop, show, job);
    return 0;
}

void call_progress_begin(const struct job *job)
{
    loop_timer_set(job_part(job, call_progress)->timer, FIRST_MS);
}

void call_progress_end(const struct job *job)
{
    loop_timer_clear(job_part(job, call_progress)->timer);
    output_progress(job->output, NULL);
}

static void close_part(struct job *job)
{
    loop_timer_destroy(job_part(job, call_progress)->timer);
}

const struct driver_part call_progress_part = {.name = "call_progress",
                                               .size = sizeof(struct call_progress),
                                               .open = open_part,
                                               .close = close_part};
