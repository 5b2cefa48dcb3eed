/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/elastic/first_failure.h"

#include "base/mem.h"
#include "driver/run/evidence_folder.h"
#include "driver/run/look.h"

static void show_look(void *context, const struct ask *look)
{
    (void)context;
    look_show(look);
}

void first_failure_take(struct first_failure *failure, struct job *job, int rank, char *text)
{
    char *owned AUTO_FREE = text;
    struct evidence_cause cause = {
        .kind = EVIDENCE_FAILURE, .text = owned, .rank = rank, .once = true};
    if (job->state != JOB_RUNNING || failure->epoch == job->epoch)
        return;
    failure->epoch = job->epoch;
    if (job->settings->dump_on_failure)
        look_ask(job, false, show_look, job);
    evidence_folder_collect(job, &cause, NULL, NULL, NULL);
}
