/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/tell/json_text.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/plain.h"
#include "driver/tell/rank_progress.h"
#include "driver/tell/recent.h"

json_t *json_text(const char *text)
{
    json_t *value = json_string(text);
    return value != NULL ? value : json_string("(not UTF-8)");
}

json_t *json_text_or_null(const char *text)
{
    return text[0] != '\0' ? json_text(text) : json_null();
}

json_t *json_wall_time(const struct job *job, int64_t mono_ns)
{
    if (mono_ns == 0)
        return json_null();
    int64_t wall = job->times.wall_begun_ns + (mono_ns - job->request->begun_ns);
    return json_real((double)(wall / 1000) / 1e6);
}

json_t *json_line(const struct recent_piece *line, size_t max)
{
    json_t *object = json_object();
    size_t length = line->length < max ? line->length : max;
    char *text AUTO_FREE = mem_alloc(length + 1);
    memcpy(text, line->text, length); /* it may have zeros */
    plain_valid(text, length);
    json_object_set_new(object, "time", json_real((double)(line->wall_ns / 1000) / 1e6));
    json_object_set_new(object, "rank",
                        line->rank == RECENT_LAUNCHER ? json_null() : json_integer(line->rank));
    json_object_set_new(object, "text", json_text(text));
    return object;
}

void json_add_world(json_t *object, const struct rank_record *record)
{
    if (record->world == 0)
        return;
    json_object_set_new(object, "world", json_integer(record->world));
    json_object_set_new(object, "world_rank", json_integer(record->world_rank));
}

static json_t *metrics_json(const struct progress *progress)
{
    json_t *object = json_object();
    for (size_t i = 0; i < progress->metric_count; i++) {
        const struct progress_metric *metric = &progress->metrics[i];
        double value = strtod(metric->value, NULL);
        json_object_set_new(object, metric->name,
                            isfinite(value) ? json_real(value) : json_text(metric->value));
    }
    return object;
}

json_t *progress_json_rank(const struct job *job, int seat)
{
    const struct progress_report *report = rank_progress(job, seat);
    if (report == NULL)
        return NULL;
    const struct progress *progress = &report->progress;
    int64_t now = clock_mono_ns();
    double eta_s = progress_report_eta_s(report, now);
    bool over = job->state >= JOB_FLUSHING;
    json_t *object = json_object();
    json_object_set_new(object, "rank", json_integer(job_seat_rank(job, seat)));
    if (progress->percent >= 0)
        json_object_set_new(object, "percent", json_real(progress->percent));
    if (eta_s >= 0 && !over)
        json_object_set_new(object, "eta_s", json_real(eta_s));
    if (progress->text != NULL)
        json_object_set_new(object, "text", json_text(progress->text));
    if (progress->metric_count > 0)
        json_object_set_new(object, "metrics", metrics_json(progress));
    if (!over)
        json_object_set_new(object, "age_s", json_real((double)(now - report->when_ns) / 1e9));
    return object;
}

json_t *progress_json_job(const struct job *job)
{
    return progress_json_rank(job, rank_progress_of_job(job));
}

void day_time_text(int64_t wall_ns, char *out)
{
    time_t when = (time_t)(wall_ns / 1000000000);
    struct tm parts;
    if (localtime_r(&when, &parts) == NULL || strftime(out, DAY_TIME_SIZE, "%H:%M:%S", &parts) == 0)
        snprintf(out, DAY_TIME_SIZE, "?");
}

/* jansson writes all of it. */
static void *allocate(size_t size)
{
    return mem_resize(NULL, size);
}

void json_memory_init(void)
{
    size_t seed = 0;
    json_set_alloc_funcs(allocate, free);
    if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) == (ssize_t)sizeof(seed) && seed != 0)
        json_object_seed(seed); /* jansson would open /dev/urandom for it */
}
