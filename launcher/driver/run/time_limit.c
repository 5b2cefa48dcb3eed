/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/run/run.h"

#include "base/mem.h"
#include "base/status.h"
#include "driver/end/teardown.h"
#include "driver/job/part.h"

struct time_limit {
    struct loop_timer *timer; /* until the limit */
    int64_t begun_ms;         /* as job_running_ms() counts */
    bool passed;
};

static void end_job(struct job *job)
{
    char *text AUTO_FREE = mem_printf("the job ran longer than --timeout %.1f s",
                                      (double)job->settings->timeout / 1000);
    teardown_launcher(job, STATUS_TIMEOUT, text);
}

static void collected(void *context)
{
    struct job *job = context;
    if (job->state == JOB_RUNNING)
        end_job(job);
}

static void passed(void *context)
{
    struct job *job = context;
    struct time_limit *limit = job_part(job, time_limit);
    job_advance_now(job);
    if (job->state != JOB_RUNNING || limit->passed)
        return;
    limit->passed = true;
    struct incident incident = {
        .kind = INCIDENT_TIMEOUT, .text = "the job ran longer than --timeout", .rank = -1};
    if (!incident_raise(job, &incident, collected, job))
        end_job(job);
}

static int open_part(struct job *job, struct error *err)
{
    (void)err;
    job_part(job, time_limit)->timer = loop_timer_create(job->loop, passed, job);
    return 0;
}

static void close_part(struct job *job)
{
    loop_timer_destroy(job_part(job, time_limit)->timer);
}

void time_limit_begin(struct job *job)
{
    struct time_limit *limit = job_part(job, time_limit);
    limit->begun_ms = job_running_ms(job);
    if (job->settings->timeout > 0)
        loop_timer_set(limit->timer, job->settings->timeout);
}

static void ending(struct job *job)
{
    loop_timer_clear(job_part(job, time_limit)->timer);
}

static void pause_limit(struct job *job, bool paused)
{
    const struct time_limit *limit = job_part(job, time_limit);
    bool runs = job->state == JOB_RUNNING && job->settings->timeout > 0;
    if (paused)
        loop_timer_clear(limit->timer);
    else if (runs)
        loop_timer_set(limit->timer,
                       job->settings->timeout - (job_running_ms(job) - limit->begun_ms));
}

const struct driver_part time_limit_part = {.name = "time_limit",
                                            .size = sizeof(struct time_limit),
                                            .open = open_part,
                                            .close = close_part,
                                            .ending = ending,
                                            .pause = pause_limit};
