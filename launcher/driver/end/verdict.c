/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/end/verdict.h"

#include <signal.h>
#include <stdio.h>

#include "base/plain.h"
#include "base/status.h"
#include "driver/end/blame.h"
#include "driver/end/requeue.h"
#include "driver/end/warning.h"
#include "driver/job/job_kind.h"
#include "model/allocation/allocation.h"

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
    kind_verdict(job, out);
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

int verdict_status_so_far(const struct job *job)
{
    struct verdict verdict = job->verdict;
    judge(job, &verdict);
    return verdict.status;
}
