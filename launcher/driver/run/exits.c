/* SPDX-License-Identifier: Apache-2.0 */
/* The reports of agents about their workers: started, exited, finished, aborted, being killed. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/plain.h"
#include "base/status.h"
#include "driver/end/blame.h"
#include "driver/end/teardown.h"
#include "driver/job/job_kind.h"
#include "driver/job/part.h"
#include "driver/run/run.h"
#include "driver/tell/events.h"

static int take_started(struct job *job, struct node_link *node, const struct agent_frame *frame)
{
    const Hvdrun__Started *message = frame->message;
    if (message->n_seats != message->n_pids || message->n_seats != message->n_when_ns)
        return -1;
    for (size_t i = 0; i < message->n_seats; i++) {
        uint32_t seat = message->seats[i];
        if (!job_seat_is_on(job, node, seat))
            return -1;
        int64_t when = node_link_time(node, message->when_ns[i]);
        if (rank_started(&job->ranks, (int)seat, (pid_t)message->pids[i], when)) {
            events_rank(job, "worker_start", (int)seat);
            KIND_TELL(job, started, (int)seat);
        }
    }
    PARTS_TELL(job, ranks_changed);
    return 0;
}

/* A later epoch may have begun after the kill. */
static bool is_after_kill(const struct node_link *node, const struct rank_record *record)
{
    return node->killed_ns >= record->started_ns &&
           exit_is_after_kill(record->ended_ns, record->ending_ns, node->killed_ns);
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

/* A worker ends once. In a job of many epochs another worker may already have its seat. */
static int repeated(const struct job *job)
{
    return job->kind->many_epochs ? 0 : -1;
}

static int take_exited(struct job *job, struct node_link *node, const struct agent_frame *frame)
{
    const Hvdrun__Exited *message = frame->message;
    if (!job_seat_is_on(job, node, message->seat))
        return -1;
    int seat = (int)message->seat;
    struct exit_event event = {
        .seat = seat,
        .signaled = message->signaled,
        .code = message->code,
        .core = message->core,
        .when_ns = node_link_time(node, message->when_ns),
        .ending_ns = message->ending_ns == 0 ? 0 : node_link_time(node, message->ending_ns),
        .uncertainty_ns = node_link_uncertainty(node)};
    event.when_ns = exit_event_time(&event);
    bool first = rank_exited(&job->ranks, seat, event.when_ns);
    if (first) {
        struct rank_record *record = &job->ranks.records[seat];
        record_exit(record, message);
        record->ending_ns = event.ending_ns;
        record->ended_by_us |= node->killed_ns != 0 && is_after_kill(node, record);
        events_rank(job, "worker_exit", seat);
        job_lines_rank_ended(job, seat); /* before another epoch may begin */
        KIND_TELL(job, exited, &event);
        PARTS_TELL(job, ranks_changed);
    }
    return first ? 0 : repeated(job);
}

static int take_finished(struct job *job, struct node_link *node, const struct agent_frame *frame)
{
    const Hvdrun__Finished *message = frame->message;
    if (!job_seat_is_on(job, node, message->seat))
        return -1;
    if (!rank_finished(&job->ranks, (int)message->seat))
        return repeated(job);
    job->ranks.records[message->seat].cut = message->cut;
    events_rank(job, "worker_finished", (int)message->seat);
    blame_say(job, (int)message->seat);
    KIND_TELL(job, finished, (int)message->seat);
    job_advance(job);
    return 0;
}

/* With Open MPI, the other ranks of the communicator would wait forever for a rank whose request is
 * refused. */
static void refuse_spawn(struct job *job, const struct node_link *node, int seat)
{
    char *text AUTO_FREE = mem_printf(
        "rank %d on %s asked for MPI_Comm_spawn, which hvdrun does not support in elastic jobs; "
        "start all ranks at once, as in -np 1 MANAGER : -np 4 WORKER",
        job_seat_rank(job, seat), node->host);
    teardown_told(job, node, STATUS_LAUNCHER, text);
}

static int take_aborted(struct job *job, struct node_link *node, const struct agent_frame *frame)
{
    const Hvdrun__Abort *message = frame->message;
    if (!job_seat_is_on(job, node, message->seat))
        return -1;
    if (message->spawn) {
        refuse_spawn(job, node, (int)message->seat);
    } else if (message->left) {
        if (job->ranks.left_mpi < 0)
            job->ranks.left_mpi = (int)message->seat;
        PARTS_TELL(job, ranks_changed);
    } else {
        struct exit_event event = {.seat = (int)message->seat,
                                   .code = message->status,
                                   .when_ns = node_link_time(node, message->when_ns),
                                   .uncertainty_ns = node_link_uncertainty(node)};
        events_rank(job, "worker_abort", (int)message->seat);
        struct rank_record *record = &job->ranks.records[event.seat];
        record->aborted = true;
        record->abort_status = (event.code & 0xff) != 0 ? event.code & 0xff : 1;
        KIND_TELL(job, aborted, &event, message->text);
    }
    return 0;
}

static int take_killing(struct job *job, struct node_link *node, const struct agent_frame *frame)
{
    const Hvdrun__Killing *message = frame->message;
    node->killed_ns = node_link_time(node, message->when_ns);
    KIND_TELL(job, killed, node, node->killed_ns);
    return 0;
}

#define UNKILLED_MAX 1024

/* At each end of workers: a host that was bad for a while may be in use again. What the agent says
 * may be of any length. */
static int take_unkilled(struct job *job, struct node_link *node, const struct agent_frame *frame)
{
    const Hvdrun__Unkilled *message = frame->message;
    char *what AUTO_FREE = mem_printf("not even SIGKILL ends %.*s", UNKILLED_MAX, message->what);
    plain_line(what, '?');
    if (node->unkilled == NULL || strcmp(node->unkilled, what) != 0) {
        log_error(&job->log,
                  "%s: %s; most likely it waits for a file system or a device: look there, "
                  "or restart the host",
                  node->host, what);
        mem_replace(&node->unkilled, what);
    }
    KIND_TELL(job, unkilled, node, what);
    PARTS_TELL(job, host_bad, node, HOST_BAD_UNKILLED, what);
    return 0;
}

static int take_ended(struct job *job, struct node_link *node, const struct agent_frame *frame)
{
    (void)frame;
    if (node->state != NODE_ENDING)
        return 0;
    node->state = NODE_ENDED;
    KIND_TELL(job, ended, node);
    job_advance(job);
    return 0;
}

#define FRAME(type, take, name, least)                                           \
    {                                                                            \
        type,                                                                    \
        {                                                                        \
            take, &hvdrun__##name##__descriptor, EPOCHS_OF_WORKERS, least, false \
        }                                                                        \
    }
static const struct part_frame frames[] = {
    FRAME(FRAME_STARTED, take_started, started, NODE_RUNNING),
    FRAME(FRAME_EXITED, take_exited, exited, NODE_RUNNING),
    FRAME(FRAME_FINISHED, take_finished, finished, NODE_RUNNING),
    FRAME(FRAME_ABORT, take_aborted, abort, NODE_RUNNING),
    FRAME(FRAME_KILLING, take_killing, killing, NODE_ENDING),
    {FRAME_UNKILLED,
     {take_unkilled, &hvdrun__unkilled__descriptor, EPOCHS_ALL, NODE_STARTING, false}},
    {FRAME_ENDED, {take_ended, NULL, EPOCHS_OF_WORKERS, NODE_STARTING, false}},
    {0}};
const struct driver_part exits_part = {.name = "exits", .frames = frames};
