/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/driver.h"

#include <malloc.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "driver/end/end.h"
#include "driver/job/job_kind.h"
#include "driver/job/job_nodes.h"
#include "driver/job/part.h"
#include "driver/start/start.h"
#include "driver/tell/events.h"
#include "driver/tell/tell.h"
#include "io/child.h"
#include "io/helpers.h"

static void reaped(void *context, const struct reaper_exit *exit)
{
    struct job *job = context;
    /* first: the transport can explain the end */
    helpers_exited(job_part(job, helpers), exit);
    job_agent_exited(job, exit);
    log_debug(&job->log, "process %d has ended (wait status %#x)", (int)exit->pid,
              (unsigned)exit->wait_status);
}

static int job_open(struct job *job, struct error *err)
{
    job->loop = loop_create(err);
    if (job->loop == NULL)
        return -1;
    job->reaper = reaper_create(reaped, job);
    rank_table_init(&job->ranks, job->plan->size);
    job->budget.total = CREDIT_BUDGET;
    return parts_open(job, err) < 0 ? -1 : job->kind->create(job, err);
}

static void stop_loop(void *context)
{
    const struct job *job = context;
    loop_stop(job->loop);
}

static void job_report(struct job *job)
{
    if (job->settings->launch_trace != NULL)
        output_file_put(job->output, job->settings->launch_trace, report_trace(job));
    KIND_TELL(job, print);
    PARTS_TELL(job, tell);
    if (requeue_run(job) < 0) {
        verdict_make(job);
        PARTS_TELL(job, tell);
    }
    if (job->state != JOB_DONE)
        return; /* the user did not wait for the reader of the output */
    if (events_finish(job, stop_loop, job))
        loop_run(job->loop);
    output_flush(job->output, stop_loop, job);
    loop_run(job->loop);
}

static void job_close(struct job *job)
{
    handshake_forget_ports(job);
    parts_close(job);
    job_free_nodes(job);
    exit_outside_clear(&job->outside);
    rank_table_destroy(&job->ranks);
    reaper_destroy(job->reaper);
    loop_destroy(job->loop);
}

#define OPEN_FILES_MAX 65536

/* A host takes up to three descriptors, and the usual soft limit is 1024. */
static void raise_descriptor_limit(struct job *job)
{
    struct rlimit limit = {.rlim_cur = 0};
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    job->open_files = (uint64_t)limit.rlim_cur;
    rlim_t wanted = limit.rlim_max < OPEN_FILES_MAX ? limit.rlim_max : OPEN_FILES_MAX;
    if (limit.rlim_cur < wanted) {
        limit.rlim_cur = wanted;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

#define LARGE_BLOCK (128 << 10)
#define HEAP_SPARE (1 << 20)

/* Large blocks, such as the buffers of links, go back to the kernel when they are freed. Otherwise
 * glibc keeps them in the heap from the first one on that is freed. In an elastic job whose hosts
 * come and go, they leave gaps there, and the heap grows with each host that comes. With a
 * threshold that is set, glibc no longer raises the other one, and would return the end of the heap
 * often. */
static void give_back_large_blocks(void)
{
    mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK);
    mallopt(M_TRIM_THRESHOLD, HEAP_SPARE);
}

int driver_run(const struct job_request *request, struct error *err)
{
    static const struct plan no_plan = {.size = 0};
    struct job job = {.request = request,
                      .settings = request->settings,
                      .kind = driver_kind(request),
                      .parts = driver_parts,
                      .advance = finish_advance,
                      .plan = request->plan != NULL ? request->plan : &no_plan,
                      .epoch = 1};
    job.times.wall_begun_ns = clock_wall_ns() - (clock_mono_ns() - request->begun_ns);
    child_ignore_signals();
    raise_descriptor_limit(&job);
    give_back_large_blocks();
    int result = job_open(&job, err);
    if (result == 0) {
        KIND_TELL(&job, begin);
        loop_run(job.loop);
        job_report(&job);
        PARTS_TELL(&job, told); /* all of its log is written */
        result = job.verdict.status;
    }
    job_close(&job);
    return result;
}
