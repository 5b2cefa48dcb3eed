/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/job.h"

#include "base/clock.h"
#include "driver/teardown.h"

#define NODE_TIMEOUT_STATIC_MS 30000 /* a switch fail-over must not kill a run of days (D5) */

const char *job_state_name(enum job_state state)
{
    static const char *const names[] = {
#define JOB_STATE_NAME(name, text) [name] = (text),
        JOB_STATE_LIST(JOB_STATE_NAME)
#undef JOB_STATE_NAME
    };
    return names[state];
}

const char *job_rank_host(const struct job *job, int rank)
{
    return job->plan->nodes[job->plan->ranks[rank].node].name;
}

int64_t job_node_timeout(const struct job *job)
{
    return job->settings->node_timeout >= 0 ? job->settings->node_timeout : NODE_TIMEOUT_STATIC_MS;
}

int64_t job_stdin_rank(const struct job *job)
{
    bool pty_reads = job->settings->pty >= 0 && !settings_is_set(job->settings, OPT_stdin_);
    return pty_reads ? job->settings->pty : job->settings->stdin_;
}

void job_send_all(struct job *job, enum frame_type type, const ProtobufCMessage *message)
{
    for (int i = 0; i < job->plan->node_count; i++)
        node_link_send(&job->nodes[i], type, job->epoch, message);
}

void job_pause_limits(struct job *job)
{
    job->paused_ms = clock_mono_ms();
    loop_timer_clear(job->time_limit);
    loop_timer_clear(job->start_limit);
    if (job->close_limit != NULL)
        loop_timer_clear(job->close_limit);
}

void job_resume_limits(struct job *job)
{
    if (job->paused_ms == 0)
        return;
    job->stood_still_ms += clock_mono_ms() - job->paused_ms;
    job->paused_ms = 0;
    if (job->state >= JOB_ENDING) {
        teardown_resume(job);
    } else if (job->state < JOB_RUNNING) {
        loop_timer_set(job->start_limit, job->settings->start_timeout);
    } else if (job->settings->timeout > 0) {
        int64_t ran = clock_mono_ms() - job->started_ns / 1000000 - job->stood_still_ms;
        loop_timer_set(job->time_limit, job->settings->timeout - ran);
    }
}
