/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/frames.h"

#include "driver/job/ask.h"
#include "driver/job/job_kind.h"
#include "driver/mpi/job_mpi.h"
#include "driver/run/collect.h"
#include "driver/run/exits.h"
#include "driver/run/job_lines.h"
#include "driver/run/job_progress.h"
#include "driver/run/job_rendezvous.h"
#include "driver/run/stdin_feed.h"
#include "driver/run/suspension.h"
#include "driver/run/user_signals.h"

static int take_hello(struct job *job, struct node_link *node, const struct agent_frame *frame)
{
    (void)frame; /* the link has decoded it: node->hello */
    kind_hello(job, node);
    return 0;
}

#define MESSAGE(name) &hvdrun__##name##__descriptor

/* The frames of all kinds of job; each kind adds its own. */
static const struct frame_rule common[FRAME_TYPES] = {
    [FRAME_HELLO] = {take_hello, NULL, EPOCHS_ALL, NODE_STARTING, false},
    [FRAME_SUSPENDED] = {suspension_answered, NULL, EPOCHS_ALL, NODE_STARTING, false},
    [FRAME_SIGNALLED] = {user_signals_frame, MESSAGE(signalled), EPOCHS_ALL, NODE_STARTING, false},
    [FRAME_ANSWER] = {ask_take, MESSAGE(answer), EPOCHS_ALL, NODE_UP, false},

    [FRAME_STARTED] = {exits_started, MESSAGE(started), EPOCHS_OF_WORKERS, NODE_RUNNING, false},
    [FRAME_EXITED] = {exits_exited, MESSAGE(exited), EPOCHS_OF_WORKERS, NODE_RUNNING, false},
    [FRAME_FINISHED] = {exits_finished, MESSAGE(finished), EPOCHS_OF_WORKERS, NODE_RUNNING, false},
    [FRAME_ABORT] = {exits_aborted, MESSAGE(abort), EPOCHS_OF_WORKERS, NODE_RUNNING, false},
    [FRAME_KILLING] = {exits_killing, MESSAGE(killing), EPOCHS_OF_WORKERS, NODE_ENDING, false},
    [FRAME_ENDED] = {exits_ended, NULL, EPOCHS_OF_WORKERS, NODE_STARTING, false},

    [FRAME_OUTPUT] = {collect_bytes, NULL, EPOCHS_OF_WORKERS, NODE_RUNNING, false},
    [FRAME_OUTPUT_SHOW] = {collect_show, NULL, EPOCHS_OF_WORKERS, NODE_RUNNING, false},
    [FRAME_STDIN_CREDIT] = {stdin_feed_credit, MESSAGE(credit), EPOCHS_OF_WORKERS, NODE_RUNNING,
                            false},

    [FRAME_LINE_OPENED] = {job_lines_opened, NULL, EPOCHS_PRESENT, NODE_RUNNING, false},
    [FRAME_STALL] = {job_lines_stall, MESSAGE(stall), EPOCHS_PRESENT, NODE_RUNNING, false},

    [FRAME_PROGRESS] = {job_progress_take, MESSAGE(progress), EPOCHS_ALL, NODE_RUNNING, false},

    [FRAME_KV_REQUEST] = {job_rendezvous_request, MESSAGE(kv_request), EPOCHS_ALL, NODE_RUNNING,
                          false},
    [FRAME_KV_DROPPED] = {job_rendezvous_dropped, MESSAGE(kv_notice), EPOCHS_ALL, NODE_RUNNING,
                          false},

    [FRAME_MPI_COLLECT] = {job_mpi_collect, MESSAGE(mpi_collect), EPOCHS_PRESENT, NODE_RUNNING,
                           true},
    [FRAME_MPI_MODEX] = {job_mpi_modex, MESSAGE(mpi_modex), EPOCHS_PRESENT, NODE_RUNNING, true},
    [FRAME_MPI_MODEX_DATA] = {job_mpi_modex_data, MESSAGE(mpi_modex_data), EPOCHS_PRESENT,
                              NODE_RUNNING, true},
    [FRAME_MPI_STORE] = {job_mpi_store, MESSAGE(mpi_store), EPOCHS_PRESENT, NODE_RUNNING, true},
    [FRAME_MPI_EVENT] = {job_mpi_event, MESSAGE(mpi_event), EPOCHS_PRESENT, NODE_RUNNING, true},
    [FRAME_MPI_SIGNAL] = {job_mpi_signal, MESSAGE(mpi_signal), EPOCHS_PRESENT, NODE_RUNNING, true},
};

static const struct frame_rule *rule_of(const struct job *job, uint8_t type)
{
    return common[type].take != NULL ? &common[type] : &job->kind->frames[type];
}

static bool is_late(const struct job *job, const struct frame_rule *rule, uint32_t epoch)
{
    bool any =
        rule->epochs == EPOCHS_ALL || (rule->epochs == EPOCHS_OF_WORKERS && job->kind->many_epochs);
    return !any && epoch != job->epoch;
}

int frames_take(struct job *job, struct node_link *node, const struct frame_header *header,
                const uint8_t *body)
{
    if (header->type >= FRAME_TYPES)
        return -1;
    const struct frame_rule *rule = rule_of(job, header->type);
    struct agent_frame frame = {header->type, header->epoch, body, header->length, NULL};
    if (rule->take == NULL || (!job->kind->many_epochs && node->state < rule->least))
        return -1;
    if (is_late(job, rule, frame.epoch) || (rule->placed && node->place < 0))
        return 0;
    if (rule->message != NULL)
        frame.message = message_read(rule->message, body, frame.length);
    bool broken = rule->message != NULL && frame.message == NULL;
    int result = broken ? -1 : rule->take(job, node, &frame);
    message_free(frame.message);
    return result;
}
