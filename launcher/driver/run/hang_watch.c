/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/run/hang_watch.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/status.h"
#include "driver/end/teardown.h"
#include "driver/job/job_kind.h"
#include "driver/job/job_nodes.h"
#include "driver/run/exits.h"
#include "driver/run/hang_culprit.h"
#include "driver/run/look.h"
#include "driver/tell/events.h"
#include "driver/tell/rank_progress.h"
#include "model/hang/hang.h"

#define TEXT_MAX ((size_t)1 << 16)

struct hang_watch {
    struct job *job;
    struct hang *hang;
    struct loop_timer *tick;
    uint64_t *places; /* of the ranks in the look that is being read */
    bool looks;       /* one is under way */
};

static void take_place(void *context, int seat, const struct look_stack *stack)
{
    const struct hang_watch *watch = context;
    if (stack->stack->role == STACK_MAIN && !stack->bare && seat < watch->job->ranks.size)
        watch->places[seat] = look_place(stack->stack);
}

static void looked(void *context, const struct look *look)
{
    struct hang_watch *watch = context;
    int count = watch->job->ranks.size;
    watch->looks = false;
    watch->places = mem_array((size_t)count + 1, sizeof(*watch->places));
    look_walk(look, take_place, watch);
    for (int seat = 0; seat < count; seat++)
        hang_place(watch->hang, seat, watch->places[seat]);
    free(watch->places);
    watch->places = NULL;
}

static void warn(const struct hang_watch *watch)
{
    struct job *job = watch->job;
    log_warning(&job->log,
                "no rank has shown progress for %.0f s; 'hvdrun stacks %s' shows where they are, "
                "and --hang-warning 0 turns this line off",
                (double)job->settings->hang_warning / 1000, job->request->job_id);
    events_job(job->events, "hang_warning");
}

/* The text of a hang, for the user; free it. `look` may be NULL. */
static char *hang_text(const struct hang_watch *watch, const struct look *look)
{
    const struct job *job = watch->job;
    struct buf culprit AUTO_BUF = BUF_INIT(TEXT_MAX);
    if (look != NULL)
        hang_culprit(job, watch->hang, look, &culprit);
    return mem_printf("the job hangs: no rank has shown progress for --hang-timeout %.1f s%s%s",
                      (double)job->settings->hang_timeout / 1000, look != NULL ? "; " : "",
                      buf_text(&culprit));
}

static void shown(void *context, const struct look *look)
{
    const struct hang_watch *watch = context;
    struct job *job = watch->job;
    char *text AUTO_FREE = hang_text(watch, look);
    look_show(look);
    events_hung(job->events, text);
    if (job->settings->on_hang != SET_ON_HANG_KILL)
        log_warning(&job->log, "%s", text);
    else if (job->state == JOB_RUNNING)
        teardown_launcher(job, STATUS_HANG, text);
}

static void found(struct hang_watch *watch)
{
    struct job *job = watch->job;
    if (job->settings->on_hang == SET_ON_HANG_WARN) {
        char *text AUTO_FREE = hang_text(watch, NULL);
        events_hung(job->events, text);
        log_warning(&job->log, "%s", text);
    } else {
        looks_ask(job->looks, shown, watch);
    }
}

static void act(struct hang_watch *watch, enum hang_news news)
{
    switch (news) {
    case HANG_NOTHING: break;
    case HANG_LOOK:
        if (!watch->looks)
            looks_ask(watch->job->looks, looked, watch);
        watch->looks = true;
        break;
    case HANG_WARNING: warn(watch); break;
    case HANG_FOUND: found(watch); break;
    case HANG_PASSED: log_notice(&watch->job->log, "the job shows progress again"); break;
    }
}

/* First the answers since the last tick, then the next request. While the job is suspended, its
 * clock stands still, and so does this. */
static void tick(void *context)
{
    struct hang_watch *watch = context;
    struct job *job = watch->job;
    loop_timer_set(watch->tick, hang_period_ms(watch->hang));
    if (job->state != JOB_RUNNING || job->paused_ms != 0)
        return;
    for (int seat = 0; seat < job->ranks.size; seat++)
        hang_seat(watch->hang, seat, job->ranks.records[seat].state == RANK_RUNNING);
    act(watch, hang_tick(watch->hang, job_running_ms(job)));
    if (job->state == JOB_RUNNING)
        job_send_all(job, FRAME_PULSE_REQUEST, NULL);
}

struct hang_watch *hang_watch_create(struct job *job)
{
    struct hang_limits limits = {job->settings->hang_warning, job->settings->hang_timeout};
    if (!job->kind->has_workers || (limits.warning_ms <= 0 && limits.hang_ms <= 0))
        return NULL;
    struct hang_watch *watch = mem_alloc(sizeof(*watch));
    *watch = (struct hang_watch){.job = job, .hang = hang_create(&limits)};
    watch->tick = loop_timer_create(job->loop, tick, watch);
    loop_timer_set(watch->tick, hang_period_ms(watch->hang));
    return watch;
}

void hang_watch_destroy(struct hang_watch *watch)
{
    if (watch == NULL)
        return;
    loop_timer_destroy(watch->tick);
    hang_destroy(watch->hang);
    free(watch);
}

static void take_pulse(struct hang_watch *watch, const Hvdrun__RankPulse *pulse)
{
    const struct progress_report *report = rank_progress(watch->job, (int)pulse->seat);
    uint64_t reports = report == NULL ? 0 : report->reports;
    struct hang_sample sample = {.output = watch->job->ranks.records[pulse->seat].output,
                                 .operations = pulse->operations + reports,
                                 .io_bytes = pulse->io_bytes,
                                 .cpu_us = pulse->cpu_us,
                                 .faults = pulse->faults,
                                 .waits = pulse->waits,
                                 .debugged = pulse->debugged};
    hang_sample(watch->hang, (int)pulse->seat, &sample, job_running_ms(watch->job));
}

int hang_watch_pulse(struct job *job, struct node_link *node, const struct agent_frame *frame)
{
    Hvdrun__Pulse *message = hvdrun__pulse__unpack(NULL, frame->length, frame->body);
    if (message == NULL)
        return -1;
    for (size_t i = 0; job->hang_watch != NULL && i < message->n_ranks; i++) {
        if (exits_seat_of(job, node, message->ranks[i]->seat))
            take_pulse(job->hang_watch, message->ranks[i]);
    }
    hvdrun__pulse__free_unpacked(message, NULL);
    return 0;
}
