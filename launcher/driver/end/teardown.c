/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/end/teardown.h"

#include <signal.h>

#include "base/clock.h"
#include "base/status.h"
#include "driver/elastic/elastic_part.h"
#include "driver/reach/reach.h"
#include "driver/run/stdin_feed.h"
#include "driver/tell/events.h"

/* How much longer than the grace an agent may take until nothing is left on its node. */
#define AGENT_PATIENCE_MS 15000
/* How long the end waits for the greeting of an agent that has been started; it has no workers. */
#define GREETING_PATIENCE_MS 3000

int64_t teardown_grace(const struct job *job, int64_t usual_ms)
{
    return job->settings->grace >= 0 ? job->settings->grace : usual_ms;
}

static void close_limit_passed(void *context)
{
    struct job *job = context;
    for (int i = 0; i < job->node_count; i++) {
        if (job->nodes[i]->state < NODE_ENDED)
            node_link_give_up(job->nodes[i], "its agent did not end its workers in time");
        else if (job->nodes[i]->state == NODE_ENDED || job->nodes[i]->state == NODE_CLOSING)
            node_link_give_up(job->nodes[i], "its agent did not end in time");
    }
}

static void greeting_limit_passed(void *context)
{
    struct job *job = context;
    for (int i = 0; i < job->node_count; i++) {
        struct node_link *node = job->nodes[i];
        if (!node_link_alive(node) || node->hello != NULL || node->stream.same_machine)
            continue;
        node_link_unreached(node);
        reach_hang_up(job->reach, node);
    }
    job_advance(job);
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
    if (job->close_limit == NULL) {
        job->close_limit = loop_timer_create(job->loop, close_limit_passed, job);
        job->greeting_limit = loop_timer_create(job->loop, greeting_limit_passed, job);
        loop_timer_set(job->greeting_limit, GREETING_PATIENCE_MS);
    }
    loop_timer_set(job->close_limit, grace_ms + AGENT_PATIENCE_MS);
}

void teardown_begin(struct job *job, int signal, int64_t grace_ms)
{
    if (job->state >= JOB_CLOSING)
        return;
    if (job->state < JOB_ENDING && job->ranks.finished < job->plan->size)
        log_info(&job->log, "ending the workers: signal %d, grace %.1f s", signal,
                 (double)grace_ms / 1000);
    if (job->state < JOB_ENDING)
        job->ending_ms = clock_mono_ms();
    job->state = JOB_ENDING;
    if (job->elastic != NULL)
        elastic_part_ending(job->elastic);
    if (job->start_limit != NULL)
        loop_timer_clear(job->start_limit);
    loop_timer_clear(job->time_limit);
    stdin_feed_stop(job->stdin_feed);
    reach_stop(job->reach);
    send_end(job, signal, grace_ms);
    job_advance(job);
}

void teardown_strays(struct job *job)
{
    int64_t grace = teardown_grace(job, GRACE_OF_STRAYS_MS);
    teardown_begin(job, SIGTERM, grace < GRACE_OF_STRAYS_MS ? grace : GRACE_OF_STRAYS_MS);
}

void teardown_resume(struct job *job)
{
    if (job->close_limit != NULL && job->state < JOB_FLUSHING)
        loop_timer_set(job->close_limit,
                       teardown_grace(job, GRACE_AFTER_SIGNAL_MS) + AGENT_PATIENCE_MS);
}

void teardown_give_up(struct job *job)
{
    close_limit_passed(job);
}

void teardown_launcher(struct job *job, int status, const char *text)
{
    exit_policy_launcher(job->policy, status, clock_mono_ns(), text);
    teardown_begin(job, SIGTERM, teardown_grace(job, GRACE_AFTER_FAILURE_MS));
}
