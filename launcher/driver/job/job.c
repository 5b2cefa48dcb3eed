/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/job/job.h"

#include "base/clock.h"
#include "model/allocation/allocation.h"

const char *job_state_name(enum job_state state)
{
    static const char *const names[] = {
#define JOB_STATE_NAME(name, text) [name] = (text),
        JOB_STATE_LIST(JOB_STATE_NAME)
#undef JOB_STATE_NAME
    };
    return names[state];
}

const char *job_seat_host(const struct job *job, int seat)
{
    return job->nodes[job->ranks.records[seat].node]->host;
}

int job_seat_rank(const struct job *job, int seat)
{
    return job->ranks.records[seat].rank;
}

bool job_seat_is_on(const struct job *job, const struct node_link *node, uint32_t seat)
{
    if (seat >= (uint32_t)job->ranks.size)
        return false;
    const struct rank_record *record = &job->ranks.records[seat];
    return record->epoch != 0 && record->node == node->index;
}

bool job_epoch_runs(const struct job *job, uint32_t epoch)
{
    const struct rank_record *newest =
        job->ranks.size > 0 ? &job->ranks.records[job->ranks.size - 1] : NULL;
    return epoch == job->epoch ||
           (newest != NULL && newest->world > 0 && epoch > job->epoch && epoch <= newest->epoch);
}

int job_rank_seat(const struct job *job, int rank)
{
    for (int seat = 0; seat < job->ranks.size; seat++) {
        const struct rank_record *record = &job->ranks.records[seat];
        if (record->rank == rank && job_epoch_runs(job, record->epoch))
            return seat;
    }
    return -1;
}

bool job_is_open(const struct job *job)
{
    const struct settings *settings = job->settings;
    return settings->transport == SET_TRANSPORT_DIAL && job->request->hosts->count == 0 &&
           settings->host_discovery_script == NULL && settings->hosts_watch == NULL;
}

bool job_is_restarted(const struct job *job)
{
    const struct allocation *allocation = job->request->allocation;
    return allocation != NULL && allocation->restart_count > 0;
}

int64_t job_stdin_rank(const struct job *job)
{
    bool pty_reads = job->settings->pty >= 0 && !settings_is_set(job->settings, OPT_stdin_);
    return pty_reads ? job->settings->pty : job->settings->stdin_;
}

int64_t job_end_ns(const struct job *job)
{
    return job->times.ended_ns != 0 ? job->times.ended_ns : clock_mono_ns();
}

int64_t job_running_ms(const struct job *job)
{
    int64_t now = job->times.paused_ms != 0 ? job->times.paused_ms : clock_mono_ms();
    return now - job->times.stood_still_ms;
}

void job_advance_now(struct job *job)
{
    if (!job->advance_asked)
        return;
    job->advance_asked = false;
    job->advance(job);
}

static void advance_deferred(void *context)
{
    job_advance_now(context);
}

void job_advance(struct job *job)
{
    if (job->advance_asked)
        return;
    job->advance_asked = true;
    loop_defer(job->loop, advance_deferred, job);
}
