/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/run/exits.h"

#include <signal.h>
#include <string.h>

#include "base/mem.h"
#include "driver/elastic/elastic_part.h"
#include "driver/end/teardown.h"
#include "driver/tell/events.h"

bool exits_seat_of(const struct job *job, const struct node_link *node, uint32_t seat)
{
    if (seat >= (uint32_t)job->ranks.size)
        return false;
    const struct rank_record *record = &job->ranks.records[seat];
    return record->epoch != 0 && record->node == node->index;
}

bool exits_is_early(const struct job *job, const struct node_link *node, uint8_t type)
{
    switch (type) {
    case FRAME_STARTED:
    case FRAME_EXITED:
    case FRAME_FINISHED:
    case FRAME_OUTPUT:
    case FRAME_OUTPUT_SHOW:
    case FRAME_STDIN_CREDIT:
    case FRAME_ABORT:
    case FRAME_KV_REQUEST:
    case FRAME_KV_DROPPED:
    case FRAME_MPI_COLLECT:
    case FRAME_MPI_MODEX:
    case FRAME_MPI_MODEX_DATA:
    case FRAME_MPI_STORE:
    case FRAME_MPI_EVENT:
    case FRAME_MPI_SIGNAL: return job->elastic == NULL && node->state < NODE_RUNNING;
    case FRAME_KILLING: return job->elastic == NULL && node->state < NODE_ENDING;
    default: return false;
    }
}

int exits_started(struct job *job, struct node_link *node, const uint8_t *body, size_t length)
{
    Hvdrun__Started *message = hvdrun__started__unpack(NULL, length, body);
    if (message == NULL)
        return -1;
    int result =
        message->n_ranks == message->n_pids && message->n_ranks == message->n_when_ns ? 0 : -1;
    for (size_t i = 0; result == 0 && i < message->n_ranks; i++) {
        uint32_t seat = message->ranks[i];
        if (!exits_seat_of(job, node, seat)) {
            result = -1;
            break;
        }
        int64_t when = node_link_time(node, message->when_ns[i]);
        if (rank_started(&job->ranks, (int)seat, (pid_t)message->pids[i], when)) {
            events_rank(job->events, "worker_start", job, (int)seat);
            if (job->elastic != NULL)
                elastic_part_started(job->elastic, (int)seat);
            else
                exit_policy_started(job->policy, (int)seat);
        }
    }
    hvdrun__started__free_unpacked(message, NULL);
    return result;
}

static void record_exit(struct rank_record *record, const Hvdrun__Exited *message)
{
    record->signaled = message->signaled;
    record->code = message->code;
    record->core = message->core;
    record->oom = message->oom;
    record->exec_failed = message->exec_failed;
    record->text = message->text[0] == '\0' ? NULL : mem_strdup(message->text);
    record->user_us = message->user_us;
    record->system_us = message->system_us;
    record->max_rss_kb = message->max_rss_kb;
}

/* One that has called MPI_Abort may wait to be ended: what it asked for is its end. */
static void judge_elastic(struct job *job, const struct exit_event *event,
                          const Hvdrun__Exited *message)
{
    const struct rank_record *record = &job->ranks.records[event->rank];
    struct exit_event told = *event;
    if (message->exec_failed)
        log_error(&job->log, "rank %d on %s could not be executed: %s", record->rank,
                  job_seat_host(job, event->rank), message->text);
    if (record->aborted) {
        told.signaled = false;
        told.code = record->abort_status;
    }
    elastic_part_exited(job->elastic, &told);
}

/* Must the job end because of it? */
static bool judge(struct job *job, const struct exit_event *event, const Hvdrun__Exited *message)
{
    if (job->elastic != NULL) {
        judge_elastic(job, event, message);
        return false;
    }
    if (message->exec_failed)
        return exit_policy_exec_failed(job->policy, event, message->text);
    return exit_policy_exited(job->policy, event);
}

/* A rank ends once. In an elastic job another one may have its seat by now. */
static int repeated(const struct job *job)
{
    return job->elastic == NULL ? -1 : 0;
}

int exits_exited(struct job *job, struct node_link *node, const uint8_t *body, size_t length)
{
    Hvdrun__Exited *message = hvdrun__exited__unpack(NULL, length, body);
    if (message == NULL || !exits_seat_of(job, node, message->rank)) {
        if (message != NULL)
            hvdrun__exited__free_unpacked(message, NULL);
        return -1;
    }
    int rank = (int)message->rank;
    struct exit_event event = {.rank = rank,
                               .signaled = message->signaled,
                               .code = message->code,
                               .core = message->core,
                               .when_ns = node_link_time(node, message->when_ns),
                               .uncertainty_ns = node_link_uncertainty(node)};
    bool end = false, first = rank_exited(&job->ranks, rank, event.when_ns);
    if (first) {
        record_exit(&job->ranks.records[rank], message);
        events_rank(job->events, "worker_exit", job, rank);
        end = judge(job, &event, message);
    }
    hvdrun__exited__free_unpacked(message, NULL);
    if (end)
        teardown_begin(job, SIGTERM, teardown_grace(job, GRACE_AFTER_FAILURE_MS));
    return first ? 0 : repeated(job);
}

int exits_finished(struct job *job, struct node_link *node, const uint8_t *body, size_t length)
{
    Hvdrun__Finished *message = hvdrun__finished__unpack(NULL, length, body);
    bool right = message != NULL && exits_seat_of(job, node, message->rank);
    bool first = right && rank_finished(&job->ranks, (int)message->rank);
    if (first) {
        job->ranks.records[message->rank].cut = message->cut;
        events_rank(job->events, "worker_finished", job, (int)message->rank);
        if (job->elastic != NULL)
            elastic_part_finished(job->elastic, (int)message->rank);
    }
    if (message != NULL)
        hvdrun__finished__free_unpacked(message, NULL);
    if (right)
        job_advance(job);
    if (right && !first)
        return repeated(job);
    return right ? 0 : -1;
}

int exits_aborted(struct job *job, struct node_link *node, const uint8_t *body, size_t length)
{
    Hvdrun__Abort *message = hvdrun__abort__unpack(NULL, length, body);
    bool right = message != NULL && exits_seat_of(job, node, message->rank);
    bool end = false;
    if (right) {
        struct exit_event event = {.rank = (int)message->rank,
                                   .code = message->status,
                                   .when_ns = node_link_time(node, message->when_ns),
                                   .uncertainty_ns = node_link_uncertainty(node)};
        events_rank(job->events, "worker_abort", job, (int)message->rank);
        struct rank_record *record = &job->ranks.records[event.rank];
        record->aborted = true;
        record->abort_status = (event.code & 0xff) != 0 ? event.code & 0xff : 1;
        if (job->elastic != NULL)
            elastic_part_aborted(job->elastic, event.rank);
        else
            end = exit_policy_aborted(job->policy, &event, message->text);
    }
    if (message != NULL)
        hvdrun__abort__free_unpacked(message, NULL);
    if (end)
        teardown_begin(job, SIGTERM, teardown_grace(job, GRACE_AFTER_FAILURE_MS));
    return right ? 0 : -1;
}

int exits_killing(struct job *job, struct node_link *node, const uint8_t *body, size_t length)
{
    Hvdrun__Killing *message = hvdrun__killing__unpack(NULL, length, body);
    if (message == NULL)
        return -1;
    exit_policy_killed(job->policy, node->place, node_link_time(node, message->when_ns));
    hvdrun__killing__free_unpacked(message, NULL);
    return 0;
}
