/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/end/requeue.h"

#include <signal.h>

#include "base/mem.h"
#include "driver/end/scontrol.h"
#include "driver/end/verdict.h"

#define REQUEUE_LIMIT_MS 10000
#define WRITTEN_LIMIT_MS 5000

static void written(void *context)
{
    struct job *job = context;
    if (job->requeue == REQUEUE_WRITING)
        loop_stop(job->loop);
}

/* Slurm may end everything as soon as scontrol has asked. */
static void wait_written(struct job *job)
{
    job->requeue = REQUEUE_WRITING;
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
        job->requeue_refused = mem_strdup(result->why);
    loop_stop(job->loop);
}

int requeue_run(struct job *job)
{
    static const char *const words[] = {"requeue", NULL};
    wait_written(job);
    job->requeue = REQUEUE_ASKING;
    scontrol_start(job, words, REQUEUE_LIMIT_MS, answered, job);
    loop_run(job->loop);
    if (job->requeue_refused == NULL)
        return 0;
    verdict_make(job);
    return -1;
}
