/* SPDX-License-Identifier: Apache-2.0 */
/* Says which ranks are far behind the others or silent, by what they say of their progress. */
#include <stdlib.h>

#include "base/mem.h"
#include "driver/job/job_kind.h"
#include "driver/job/part.h"
#include "driver/tell/events.h"
#include "driver/tell/rank_progress.h"
#include "features/straggler/straggler.h"

const char straggler_feature[] = "which ranks are slower than the others (--straggler-time)";

struct straggler_watch {
    struct job *job;
    struct stragglers *stragglers;
    struct loop_timer *tick;
};

static void marked(void *context, int seat, enum straggler_kind kind, const char *text)
{
    struct job *job = context;
    struct rank_record *record = &job->ranks.records[seat];
    const char *host = job_seat_host(job, seat);
    const char *word = kind == STRAGGLER_BEHIND ? "far behind" : "silent";
    *(kind == STRAGGLER_BEHIND ? &record->straggles : &record->silent) = text != NULL;
    events_straggler(job, seat, kind == STRAGGLER_SILENT, text);
    if (text != NULL)
        log_warning(&job->log, "rank %d on %s is %s: %s", record->rank, host, word, text);
    else if (record->state == RANK_RUNNING)
        log_notice(&job->log, "rank %d on %s is not %s any more", record->rank, host, word);
}

static void sample(const struct straggler_watch *watch, int seat)
{
    const struct job *job = watch->job;
    const struct rank_record *record = &job->ranks.records[seat];
    const struct progress_report *report = rank_progress(job, seat);
    bool known = report != NULL && report->epoch == record->epoch;
    stragglers_seat(watch->stragglers, seat, record->state == RANK_RUNNING);
    stragglers_sample(watch->stragglers, seat, known ? report->progress.percent : -1,
                      record->output);
}

/* While the job is suspended, its clock stands still, and so does this. */
static void tick(void *context)
{
    struct straggler_watch *watch = context;
    struct job *job = watch->job;
    loop_timer_set(watch->tick, stragglers_period_ms(watch->stragglers));
    if (job->state != JOB_RUNNING || job->times.paused_ms != 0)
        return;
    for (int seat = 0; seat < job->ranks.size; seat++)
        sample(watch, seat);
    stragglers_tick(watch->stragglers, job_running_ms(job), marked, job);
}

static int open_part(struct job *job, struct error *err)
{
    (void)err;
    if (!job->kind->has_workers || job->settings->straggler_time <= 0)
        return 0;
    struct straggler_watch *watch = MEM_NEW((struct straggler_watch){.job = job});
    watch->stragglers = stragglers_create(job->settings->straggler_time);
    watch->tick = loop_timer_create(job->loop, tick, watch);
    loop_timer_set(watch->tick, stragglers_period_ms(watch->stragglers));
    job->own[PART_straggler_watch] = watch;
    return 0;
}

static void close_part(struct job *job)
{
    struct straggler_watch *watch = job_part(job, straggler_watch);
    loop_timer_destroy(watch->tick);
    stragglers_destroy(watch->stragglers);
    free(watch);
}

const struct driver_part straggler_watch_part = {
    .name = "straggler_watch", .open = open_part, .close = close_part};
