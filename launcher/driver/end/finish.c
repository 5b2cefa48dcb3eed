/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/end/end.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/plain.h"
#include "base/status.h"
#include "driver/end/blame.h"
#include "driver/end/teardown.h"
#include "driver/end/warning.h"
#include "driver/job/job_kind.h"
#include "driver/job/job_nodes.h"
#include "driver/job/part.h"
#include "model/allocation/allocation.h"
#include "node/runtime_dir.h"

#define CLOSE_WAIT_MS 5000   /* for agents to exit after QUIT */
#define ORPHANS_WAIT_MS 5000 /* for killing the processes of dead agents */
#define REQUEUE_LIMIT_MS 10000
#define WRITTEN_LIMIT_MS 5000

/* Why Slurm did not requeue the job; NULL: it was not asked, or did. */
static const char *requeue_refused(const struct job *job)
{
    const struct requeue *requeue = job_part(job, requeue);
    return requeue == NULL ? NULL : requeue->refused;
}

/* The verdict */

static void blame_queue(const struct job *job, struct verdict *out)
{
    verdict_set(out, STATUS_LAUNCHER, CAUSE_LAUNCHER, NULL);
    snprintf(out->explanation, sizeof(out->explanation),
             "cannot requeue the Slurm job %s: %s; submit it with sbatch --requeue",
             job->request->allocation->job_id, requeue_refused(job));
}

/* A job succeeds only if its output was read. That holds even if all ranks had exited with 0
 * before we noticed that the reader was gone: some of their output was lost. A check has no
 * other result than its output. */
static void judge_output(const struct job *job, struct verdict *out)
{
    if (out->status != 0)
        return;
    if (job->gone)
        out->status = 128 + SIGPIPE;
    else if (job->output_failed && !job->kind->has_workers)
        out->status = STATUS_LAUNCHER;
}

void verdict_note_output(struct job *job)
{
    judge_output(job, &job->verdict);
}

static void judge(const struct job *job, struct verdict *out)
{
    KIND_TELL(job, verdict, out);
    blame_refine(job, out);
    warning_verdict(job_part(job, warning), out);
    if (requeue_refused(job) != NULL)
        blame_queue(job, out);
    judge_output(job, out);
}

void verdict_make(struct job *job)
{
    judge(job, &job->verdict);
    plain_text(job->verdict.explanation);
}

/* The exit status as far as it is known: all workers have ended, but the job is not over. */
static int status_so_far(const struct job *job)
{
    struct verdict verdict = job->verdict;
    judge(job, &verdict);
    return verdict.status;
}

/* The last steps */

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
    message.status = (uint32_t)status_so_far(job);
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
    PARTS_TELL(job, over);
    KIND_TELL(job, over);
    if (!orphans_end(job, ORPHANS_WAIT_MS))
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
    KIND_TELL(job, advance);
    if (job->state == JOB_ENDING && job_all_nodes(job, has_ended))
        close_agents(job);
    if (job->state == JOB_CLOSING && job_all_nodes(job, has_closed) && !PARTS_ANY(job, busy))
        finish(job);
}

/* Slurm */

static void close_part(struct job *job)
{
    free(job_part(job, requeue)->refused);
}

static void written(void *context)
{
    struct job *job = context;
    if (job_part(job, requeue)->stage == REQUEUE_WRITING)
        loop_stop(job->loop);
}

/* Slurm may end everything as soon as scontrol has asked. */
static void wait_written(struct job *job)
{
    job_part(job, requeue)->stage = REQUEUE_WRITING;
    struct loop_timer *limit = loop_timer_create(job->loop, written, job);
    loop_timer_set(limit, WRITTEN_LIMIT_MS);
    output_flush(job->output, written, job);
    loop_run(job->loop);
    loop_timer_destroy(limit);
}

/* Slurm ends everything in the job as soon as it has requeued it, scontrol too. */
static void answered(void *context, const struct program_result *result)
{
    struct job *job = context;
    if (result->why != NULL && result->signal != SIGTERM)
        job_part(job, requeue)->refused = mem_strdup(result->why);
    loop_stop(job->loop);
}

int requeue_run(struct job *job)
{
    static const char *const words[] = {"requeue", NULL};
    if (!warning_wants_requeue(job_part(job, warning)))
        return 0;
    wait_written(job);
    job_part(job, requeue)->stage = REQUEUE_ASKING;
    scontrol_start(job, words, REQUEUE_LIMIT_MS, answered, job);
    loop_run(job->loop);
    return requeue_refused(job) == NULL ? 0 : -1;
}

bool requeue_is_under_way(const struct job *job)
{
    return job_part(job, requeue)->stage != REQUEUE_NO;
}

const struct driver_part requeue_part = {
    .name = "requeue", .size = sizeof(struct requeue), .close = close_part};
