/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/end/teardown.h"

#include <signal.h>

#include "base/clock.h"
#include "base/status.h"
#include "driver/job/job_kind.h"
#include "driver/job/part.h"

/* Time beyond the grace period for an agent to end all processes on its node. */
#define CLOSE_LIMIT_MS 15000

struct teardown {
    struct loop_timer *limit; /* of all agents together */
    int64_t begun_ms;         /* monotonic; 0: not yet */
};

void teardown_give_up(struct job *job)
{
    for (int i = 0; i < job->node_count; i++) {
        if (job->nodes[i]->state < NODE_ENDED)
            node_link_give_up(job->nodes[i], "its agent did not terminate its workers in time");
        else if (job->nodes[i]->state == NODE_ENDED || job->nodes[i]->state == NODE_CLOSING)
            node_link_give_up(job->nodes[i], "its agent did not exit in time");
    }
}

static void limit_passed(void *context)
{
    struct job *job = context;
    enum job_state before = job->state;
    job_advance_now(job);
    if (job->state == before)
        teardown_give_up(job);
}

static int open_part(struct job *job, struct error *err)
{
    (void)err;
    job_part(job, teardown)->limit = loop_timer_create(job->loop, limit_passed, job);
    return 0;
}

static void close_part(struct job *job)
{
    loop_timer_destroy(job_part(job, teardown)->limit);
}

int64_t teardown_grace(const struct job *job, int64_t usual_ms)
{
    return job->settings->grace >= 0 ? job->settings->grace : usual_ms;
}

static void send_end(struct job *job, int signal, int64_t grace_ms)
{
    Hvdrun__End message = HVDRUN__END__INIT;
    message.signal = signal;
    message.grace_ms = (uint32_t)grace_ms;
    for (int i = 0; i < job->node_count; i++) {
        struct node_link *node = job->nodes[i];
        if (!node_link_alive(node) || node->state >= NODE_ENDED)
            continue;
        node->state = NODE_ENDING;
        node_link_send(node, FRAME_END, job->epoch, &message.base);
    }
    loop_timer_set(job_part(job, teardown)->limit, grace_ms + CLOSE_LIMIT_MS);
}

static void begin(struct job *job, int signal, int64_t grace_ms)
{
    if (job->ranks.finished < job->plan->size)
        log_info(&job->log, "terminating the workers: signal %d, grace period %.1f s", signal,
                 (double)grace_ms / 1000);
    job_part(job, teardown)->begun_ms = clock_mono_ms();
    job->state = JOB_ENDING;
    KIND_TELL(job, ending);
    PARTS_TELL(job, ending);
}

void teardown_begin(struct job *job, int signal, int64_t grace_ms)
{
    if (job->state >= JOB_CLOSING)
        return;
    if (job->state < JOB_ENDING)
        begin(job, signal, grace_ms);
    send_end(job, signal, grace_ms);
    job_advance(job);
}

void teardown_leftovers(struct job *job)
{
    int64_t grace = teardown_grace(job, GRACE_OF_LEFTOVERS_MS);
    teardown_begin(job, SIGTERM, grace < GRACE_OF_LEFTOVERS_MS ? grace : GRACE_OF_LEFTOVERS_MS);
}

void teardown_after_failure(struct job *job)
{
    teardown_begin(job, SIGTERM, teardown_grace(job, GRACE_AFTER_FAILURE_MS));
}

static void launcher_failed(struct job *job, int status, int64_t when_ns, const char *text)
{
    exit_outside_failed(&job->outside, status != 0 ? status : STATUS_LAUNCHER, when_ns, text);
    teardown_after_failure(job);
}

void teardown_launcher(struct job *job, int status, const char *text)
{
    launcher_failed(job, status, clock_mono_ns(), text);
}

void teardown_told(struct job *job, const struct node_link *node, int status, const char *text)
{
    launcher_failed(job, status, node->liveness.heard_ms * 1000000, text);
}

int64_t teardown_age_ms(const struct job *job)
{
    int64_t begun = job_part(job, teardown)->begun_ms;
    return begun == 0 ? INT64_MAX : clock_mono_ms() - begun;
}

void teardown_expect_quit(struct job *job, int64_t limit_ms)
{
    loop_timer_set(job_part(job, teardown)->limit, limit_ms);
}

void teardown_over(struct job *job)
{
    loop_timer_clear(job_part(job, teardown)->limit);
}

/* After a pause, the agents get their full time again. */
static void pause_limit(struct job *job, bool paused)
{
    bool under_way = job->state == JOB_ENDING || job->state == JOB_CLOSING;
    if (paused)
        loop_timer_clear(job_part(job, teardown)->limit);
    else if (under_way)
        loop_timer_set(job_part(job, teardown)->limit,
                       teardown_grace(job, GRACE_AFTER_SIGNAL_MS) + CLOSE_LIMIT_MS);
}

const struct driver_part teardown_part = {.name = "teardown",
                                          .size = sizeof(struct teardown),
                                          .open = open_part,
                                          .close = close_part,
                                          .pause = pause_limit};
