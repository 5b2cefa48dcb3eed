/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/job/job.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "driver/elastic/elastic_part.h"
#include "driver/end/teardown.h"
#include "model/allocation/allocation.h"

#define NODE_TIMEOUT_STATIC_MS 30000 /* a switch fail-over must not kill a run of days (D5) */
#define NODE_TIMEOUT_ELASTIC_MS 5000

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

struct node_link *job_add_node(struct job *job, const char *host)
{
    struct node_link *node = mem_alloc(sizeof(*node));
    job->nodes = mem_resize_array(job->nodes, (size_t)job->node_count + 1, sizeof(*job->nodes));
    node->index = job->node_count;
    node->place = -1;
    node->host = mem_strdup(host);
    job->nodes[job->node_count++] = node;
    return node;
}

void job_set_places(struct job *job, struct node_link *const *places)
{
    size_t count = (size_t)job->plan->node_count;
    for (int i = 0; i < job->node_count; i++)
        job->nodes[i]->place = -1;
    free(job->places);
    job->places = mem_array(count, sizeof(*job->places));
    for (size_t i = 0; i < count; i++) {
        job->places[i] = places[i];
        places[i]->place = (int)i;
    }
}

void job_take_plan(struct job *job)
{
    for (int i = 0; i < job->plan->node_count; i++)
        job_add_node(job, job->plan->nodes[i].name);
    job_set_places(job, job->nodes);
    for (int rank = 0; rank < job->plan->size; rank++) {
        const struct plan_rank *place = &job->plan->ranks[rank];
        struct rank_record *record = rank_table_seat(&job->ranks, rank);
        record->rank = rank;
        record->local_rank = place->local_rank;
        record->app = place->app;
        record->node = place->node;
        record->epoch = job->epoch;
    }
}

int64_t job_node_timeout(const struct job *job)
{
    if (job->settings->node_timeout >= 0)
        return job->settings->node_timeout;
    return job->elastic != NULL ? NODE_TIMEOUT_ELASTIC_MS : NODE_TIMEOUT_STATIC_MS;
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

bool job_all_nodes(struct job *job, bool (*is_so)(const struct node_link *node))
{
    for (int seen = 0; seen < job->node_count; seen++) {
        if (job->node_behind >= job->node_count)
            job->node_behind = 0;
        if (!is_so(job->nodes[job->node_behind]))
            return false;
        job->node_behind++;
    }
    return true;
}

void job_send_all(struct job *job, enum frame_type type, const ProtobufCMessage *message)
{
    for (int i = 0; i < job->node_count; i++)
        node_link_send(job->nodes[i], type, job->epoch, message);
}

void job_pause_limits(struct job *job)
{
    job->paused_ms = clock_mono_ms();
    loop_timer_clear(job->time_limit);
    if (job->start_limit != NULL)
        loop_timer_clear(job->start_limit);
    if (job->elastic != NULL)
        elastic_part_pause(job->elastic, true);
    if (job->close_limit != NULL)
        loop_timer_clear(job->close_limit);
}

void job_resume_limits(struct job *job)
{
    if (job->paused_ms == 0)
        return;
    job->stood_still_ms += clock_mono_ms() - job->paused_ms;
    job->paused_ms = 0;
    if (job->elastic != NULL)
        elastic_part_pause(job->elastic, false);
    if (job->state >= JOB_ENDING) {
        teardown_resume(job);
    } else if (job->state < JOB_RUNNING) {
        if (job->start_limit != NULL)
            loop_timer_set(job->start_limit, job->settings->start_timeout);
    } else if (job->settings->timeout > 0) {
        int64_t ran = clock_mono_ms() - job->started_ns / 1000000 - job->stood_still_ms;
        loop_timer_set(job->time_limit, job->settings->timeout - ran);
    }
}
