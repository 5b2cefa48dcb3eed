/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/progress_desk.h"

#include <stdlib.h>

#include "base/mem.h"
#include "wire/control.pb-c.h"

#define FRAME_REPORTS 64 /* in one frame: at most some 300 KiB */
/* Of the link to the driver: what workers say about their progress must not be what fills it. */
#define QUEUE_MAX (LINK_QUEUE_MAX / 8)

struct report {
    uint32_t epoch, seat;
    int64_t when_ns;
    struct progress progress;
};

struct progress_desk {
    const struct post *post;
    struct loop_timer *timer; /* set: a frame was sent less than a period ago */
    struct report *reports;   /* that wait */
    size_t count;
};

static void period_over(void *context);

struct progress_desk *progress_desk_create(struct loop *loop, const struct post *post)
{
    struct progress_desk *desk = mem_alloc(sizeof(*desk));
    desk->post = post;
    desk->timer = loop_timer_create(loop, period_over, desk);
    return desk;
}

static void clear(struct progress_desk *desk)
{
    for (size_t i = 0; i < desk->count; i++)
        progress_clear(&desk->reports[i].progress);
    free(desk->reports);
    desk->reports = NULL;
    desk->count = 0;
}

void progress_desk_destroy(struct progress_desk *desk)
{
    if (desk == NULL)
        return;
    clear(desk);
    loop_timer_destroy(desk->timer);
    free(desk);
}

/* The message borrows the texts of the report. */
static void fill(Hvdrun__RankProgress *message, const struct report *report)
{
    const struct progress *progress = &report->progress;
    size_t count = progress->metric_count;
    hvdrun__rank_progress__init(message);
    message->seat = report->seat;
    message->epoch = report->epoch;
    message->when_ns = (uint64_t)report->when_ns;
    message->percent = progress->percent;
    message->eta_s = progress->eta_s;
    message->text = progress->text != NULL ? progress->text : "";
    message->names = mem_array(count + 1, sizeof(char *));
    message->values = mem_array(count + 1, sizeof(char *));
    message->n_names = message->n_values = count;
    for (size_t i = 0; i < count; i++) {
        message->names[i] = progress->metrics[i].name;
        message->values[i] = progress->metrics[i].value;
    }
}

static void send_some(const struct progress_desk *desk, size_t from, size_t count)
{
    Hvdrun__RankProgress items[FRAME_REPORTS], *list[FRAME_REPORTS];
    Hvdrun__Progress message = HVDRUN__PROGRESS__INIT;
    for (size_t i = 0; i < count; i++) {
        fill(&items[i], &desk->reports[from + i]);
        list[i] = &items[i];
    }
    message.workers = list;
    message.n_workers = count;
    post_message(desk->post, FRAME_PROGRESS, &message.base);
    for (size_t i = 0; i < count; i++) {
        free(items[i].names);
        free(items[i].values);
    }
}

void progress_desk_flush(struct progress_desk *desk)
{
    const struct link *link = post_link(desk->post);
    if (desk->count == 0)
        return;
    loop_timer_set(desk->timer, PROGRESS_PERIOD_MS);
    if (link != NULL && link_queued(link) > QUEUE_MAX)
        return;
    for (size_t at = 0; at < desk->count; at += FRAME_REPORTS) {
        size_t left = desk->count - at;
        send_some(desk, at, left < FRAME_REPORTS ? left : FRAME_REPORTS);
    }
    clear(desk);
}

static void period_over(void *context)
{
    progress_desk_flush(context);
}

static struct report *find(struct progress_desk *desk, uint32_t epoch, uint32_t seat)
{
    for (size_t i = 0; i < desk->count; i++) {
        if (desk->reports[i].seat == seat && desk->reports[i].epoch == epoch)
            return &desk->reports[i];
    }
    desk->reports = mem_resize_array(desk->reports, desk->count + 1, sizeof(*desk->reports));
    struct report *report = &desk->reports[desk->count++];
    *report = (struct report){epoch, seat, 0, PROGRESS_INIT};
    return report;
}

void progress_desk_take(struct progress_desk *desk, uint32_t epoch, uint32_t seat, int64_t when_ns,
                        struct progress *progress)
{
    struct report *report = find(desk, epoch, seat);
    progress_move(&report->progress, progress);
    report->when_ns = when_ns;
    if (!loop_timer_is_set(desk->timer))
        progress_desk_flush(desk);
}
