/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/end/requeue.h"

#include <signal.h>
#include <stdlib.h>

#include "base/mem.h"
#include "driver/end/warning.h"
#include "driver/job/part.h"

#define REQUEUE_LIMIT_MS 10000
#define WRITTEN_LIMIT_MS 5000

static int open_part(struct job *job, struct error *err)
{
    (void)err;
    job->own[PART_requeue] = mem_alloc(sizeof(struct requeue));
    return 0;
}

static void close_part(struct job *job)
{
    free(job_part(job, requeue)->refused);
    free(job_part(job, requeue));
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

const char *requeue_refused(const struct job *job)
{
    const struct requeue *requeue = job_part(job, requeue);
    return requeue == NULL ? NULL : requeue->refused;
}

const struct driver_part requeue_part = {.name = "requeue", .open = open_part, .close = close_part};
