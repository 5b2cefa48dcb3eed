/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/tell/progress_json.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "driver/tell/json_text.h"
#include "driver/tell/rank_progress.h"

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
