/* SPDX-License-Identifier: Apache-2.0 */
#include "features/metrics/metrics_driver.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "driver/job/job_kind.h"
#include "driver/job/part.h"
#include "driver/tell/json_text.h"
#include "driver/tell/rank_progress.h"
#include "features/metrics/metrics.h"
#include "features/usage/usage_driver.h"

#define FIRST_MS 500
#define OLD_NS ((int64_t)10000 * 1000000) /* a sample of a rank whose host does not answer */

struct job_history {
    struct job *job;
    struct history points;
    struct loop_timer *timer;
    bool ended;
};

static double progress_of(const struct job *job)
{
    const struct progress_report *report = rank_progress(job, rank_progress_of_job(job));
    return report == NULL || report->progress.percent < 0 ? NAN : report->progress.percent / 100;
}

/* NAN is a sum of nothing. */
static void add(double *sum, double value)
{
    if (!isnan(value))
        *sum = isnan(*sum) ? value : *sum + value;
}

static void add_rank(struct history_point *point, const struct rank_usage *usage, int *gpus)
{
    const struct rank_gpus *own = &usage->last.gpus;
    double cpus = rank_usage_cpus(usage);
    add(&point->cpus, cpus < 0 ? NAN : cpus);
    add(&point->resident_bytes, (double)usage->last.resident_bytes);
    if (own->count == 0)
        return;
    add(&point->gpu_memory_bytes, own->memory_bytes);
    if (isnan(own->use_percent))
        return;
    add(&point->gpu_use_percent, own->use_percent * own->count);
    *gpus += (int)own->count;
}

static struct history_point point_now(const struct job *job)
{
    int64_t now_ns = clock_mono_ns();
    int gpus = 0;
    struct history_point point = {.when_ms = now_ns / 1000000,
                                  .progress = progress_of(job),
                                  .cpus = NAN,
                                  .resident_bytes = NAN,
                                  .gpu_use_percent = NAN,
                                  .gpu_memory_bytes = NAN};
    for (int seat = 0; seat < job->ranks.size; seat++) {
        if (job->ranks.records[seat].state != RANK_RUNNING)
            continue;
        const struct rank_usage *usage = sampler_rank(job_part(job, sampler), seat);
        point.ranks++;
        if (usage != NULL && now_ns - usage->last.when_ns < OLD_NS)
            add_rank(&point, usage, &gpus);
    }
    point.gpu_use_percent /= gpus; /* NAN if there are none */
    return point;
}

static void note(struct job_history *history)
{
    struct history_point point = point_now(history->job);
    if (point.ranks > 0)
        history_add(&history->points, &point);
}

static void answered(void *context, const struct ask *ask)
{
    (void)ask;
    note(context);
}

static void is_due(void *context)
{
    struct job_history *history = context;
    const struct job *job = history->job;
    if (job->state >= JOB_CLOSING)
        return;
    loop_timer_set(history->timer, history_wait_ms(&history->points));
    if (job->ranks.running > 0 && !sampler_ask(job_part(job, sampler), answered, history))
        note(history);
}

/* For the page or its file. */
static int open_part(struct job *job, struct error *err)
{
    (void)err;
    const struct settings *settings = job->settings;
    if (!job->kind->has_workers || (settings->metrics == NULL && settings->page_file == NULL))
        return 0;
    struct job_history *history = mem_alloc(sizeof(*history));
    history->job = job;
    history->timer = loop_timer_create(job->loop, is_due, history);
    loop_timer_set(history->timer, FIRST_MS);
    job->own[PART_job_history] = history;
    return 0;
}

static void close_part(struct job *job)
{
    struct job_history *history = job_part(job, job_history);
    ask_forget(history->job, history);
    loop_timer_destroy(history->timer);
    free(history);
}

void job_history_end(struct job_history *history)
{
    if (history->ended)
        return;
    struct history_point point = point_now(history->job);
    history->ended = true;
    history_add(&history->points, &point);
}

/* To four decimal places, without libm: hvdrun needs nothing else of it. */
static double rounded(double value)
{
    double scaled = value * 1e4;
    bool has_more = scaled >= 0 && scaled < 0x1p52; /* such a number can have other places */
    return has_more ? (double)(int64_t)(scaled + 0.5) / 1e4 : value;
}

static void set_known(json_t *object, const char *key, double value)
{
    if (!isnan(value))
        json_object_set_new(object, key, json_real(rounded(value)));
}

static void set_bytes(json_t *object, const char *key, double bytes)
{
    if (!isnan(bytes))
        json_object_set_new(object, key, json_integer((json_int_t)bytes));
}

static json_t *point_json(const struct job *job, const struct history_point *point)
{
    json_t *object = json_object();
    json_object_set_new(object, "time", json_wall_time(job, point->when_ms * 1000000));
    json_object_set_new(object, "ranks", json_integer(point->ranks));
    set_known(object, "progress", point->progress);
    set_known(object, "cpus", point->cpus);
    set_bytes(object, "resident_bytes", point->resident_bytes);
    set_known(object, "gpu_use_percent", point->gpu_use_percent);
    set_bytes(object, "gpu_memory_bytes", point->gpu_memory_bytes);
    if (point->after_gap)
        json_object_set_new(object, "gap", json_true());
    return object;
}

json_t *job_history_json(const struct job_history *history, uint64_t since)
{
    const struct history *points = &history->points;
    uint64_t number = since > points->first ? since : points->first;
    json_t *object = json_object(), *list = json_array();
    for (; number < points->next; number++)
        json_array_append_new(list, point_json(history->job, history_point(points, number)));
    json_object_set_new(object, "next", json_integer((json_int_t)points->next));
    json_object_set_new(object, "points", list);
    return object;
}

const struct driver_part job_history_part = {
    .name = "job_history", .open = open_part, .close = close_part};
