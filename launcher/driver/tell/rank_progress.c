/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/tell/rank_progress.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "driver/job/job_kind.h"
#include "driver/job/part.h"
#include "wire/control.pb-c.h"

struct progress_list {
    struct progress_report *items; /* by seat */
    int count;
};

static void close_part(struct job *job)
{
    struct progress_list *list = job_part(job, progress_list);
    for (int i = 0; i < list->count; i++)
        progress_clear(&list->items[i].progress);
    free(list->items);
}

static void make_room(struct progress_list *list, int seat)
{
    int count = list->count < 8 ? 8 : list->count;
    while (count <= seat)
        count *= 2;
    if (seat < list->count)
        return;
    list->items = mem_resize_array(list->items, (size_t)count, sizeof(*list->items));
    for (int i = list->count; i < count; i++)
        list->items[i] = (struct progress_report){.progress = PROGRESS_INIT};
    list->count = count;
}

void progress_list_take(struct progress_list *list, int seat, uint32_t epoch, int64_t when_ns,
                        struct progress *progress)
{
    make_room(list, seat);
    struct progress_report *report = &list->items[seat];
    report->reports = report->epoch == epoch ? report->reports + 1 : 1;
    report->epoch = epoch;
    report->when_ns = when_ns;
    progress_move(&report->progress, progress);
}

const struct progress_report *rank_progress(const struct job *job, int seat)
{
    const struct progress_list *list = job_part(job, progress_list);
    if (list == NULL || seat < 0 || seat >= list->count || seat >= job->ranks.size)
        return NULL;
    const struct progress_report *report = &list->items[seat];
    return report->epoch != 0 && report->epoch == job->ranks.records[seat].epoch ? report : NULL;
}

/* Whether the report of one worker says more about the job than that of another one. */
static bool is_better(const struct progress_report *report, const struct progress_report *than)
{
    bool says = report->progress.percent >= 0, other = than->progress.percent >= 0;
    if (says != other)
        return says;
    return says && report->progress.percent < than->progress.percent;
}

/* Workers that took part in the present epoch; others have left the job. */
int rank_progress_of_job(const struct job *job)
{
    const struct progress_list *list = job_part(job, progress_list);
    int best = -1;
    for (int seat = 0; list != NULL && seat < list->count; seat++) {
        const struct progress_report *report = rank_progress(job, seat);
        if (report == NULL || !job_epoch_runs(job, job->ranks.records[seat].joined))
            continue;
        if (job->ranks.records[seat].rank == 0 && report->progress.percent >= 0)
            return seat;
        if (best < 0 || is_better(report, rank_progress(job, best)))
            best = seat;
    }
    return best;
}

double progress_report_eta_s(const struct progress_report *report, int64_t now_ns)
{
    if (report->progress.eta_s < 0)
        return -1;
    double left = report->progress.eta_s - (double)(now_ns - report->when_ns) / 1e9;
    return left > 0 ? left : 0;
}

/* The frames in which agents say how far their workers are. */

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
        KIND_TELL(job, progressed, (int)item->seat, when_ns);
    }
    return 0;
}

static const struct part_frame frames[] = {
    {FRAME_PROGRESS,
     {take_progress, &hvdrun__progress__descriptor, EPOCHS_ALL, NODE_RUNNING, false}},
    {0}};
const struct driver_part progress_list_part = {.name = "progress_list",
                                               .size = sizeof(struct progress_list),
                                               .close = close_part,
                                               .frames = frames};
