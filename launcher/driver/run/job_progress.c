/* SPDX-License-Identifier: Apache-2.0 */
/* The frames in which agents say how far their workers are. */
#include <string.h>

#include "driver/job/job_kind.h"
#include "driver/job/part.h"
#include "driver/tell/rank_progress.h"
#include "wire/control.pb-c.h"

/* The agent has checked all of it, but it may be another program. */
static void fill(struct progress *progress, const Hvdrun__RankProgress *message)
{
    progress_set_percent(progress, message->percent, NULL);
    progress_set_eta(progress, message->eta_s, NULL);
    progress_set_text(progress, message->text, strlen(message->text));
    for (size_t i = 0; i < message->n_names && i < message->n_values; i++)
        progress_add_metric(progress, message->names[i], message->values[i]);
}

/* Of a worker that has left its seat to another one: late, which is not an error. */
static bool is_late(const struct job *job, const struct node_link *node,
                    const Hvdrun__RankProgress *message)
{
    const struct rank_record *record = &job->ranks.records[message->seat];
    return record->epoch != message->epoch || record->node != node->index;
}

static int take_progress(struct job *job, struct node_link *node, const struct agent_frame *frame)
{
    const Hvdrun__Progress *message = frame->message;
    for (size_t i = 0; i < message->n_workers; i++) {
        const Hvdrun__RankProgress *item = message->workers[i];
        struct progress progress AUTO_PROGRESS = PROGRESS_INIT;
        if (item->seat >= (uint32_t)job->ranks.size)
            return -1;
        if (is_late(job, node, item))
            continue;
        fill(&progress, item);
        int64_t when_ns = node_link_time(node, item->when_ns);
        progress_list_take(job_part(job, progress_list), (int)item->seat, item->epoch, when_ns,
                           &progress);
        kind_progressed(job, (int)item->seat, when_ns);
    }
    return 0;
}

static int open_part(struct job *job, struct error *err)
{
    (void)err;
    job->own[PART_progress_list] = progress_list_create();
    return 0;
}

static void close_part(struct job *job)
{
    progress_list_destroy(job_part(job, progress_list));
}

static const struct part_frame frames[] = {
    {FRAME_PROGRESS,
     {take_progress, &hvdrun__progress__descriptor, EPOCHS_ALL, NODE_RUNNING, false}},
    {0}};
const struct driver_part progress_list_part = {
    .name = "progress_list", .open = open_part, .close = close_part, .frames = frames};
