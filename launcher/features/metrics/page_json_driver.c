/* SPDX-License-Identifier: Apache-2.0 */
#include "features/metrics/metrics_driver.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/plain.h"
#include "driver/job/job_kind.h"
#include "driver/tell/json_text.h"
#include "driver/tell/recent.h"
#include "driver/tell/tell.h"
#include "features/usage/usage_driver.h"
#include "features/usage/usage_marks.h"

#define FAILURE_MAX ((size_t)64 << 10)
#define END_FAILURE_MAX ((size_t)8 << 10) /* JSON makes at most 6 bytes of one */
#define END_LINES 20
#define END_LINE_MAX ((size_t)100)
#define END_RANKS 64

static bool same(const json_t *one, const json_t *other, const char *key)
{
    return json_equal(json_object_get(one, key), json_object_get(other, key)) != 0;
}

/* Adds what entries of `from` have and the same ones of `to` lack. Both are in the same order, and
 * either may have entries that the other one has not. */
static void merge(const json_t *to, const json_t *from, const char *key, const char *other_key)
{
    size_t at = 0, count = json_array_size(to);
    for (size_t i = 0; i < json_array_size(from); i++) {
        json_t *entry = json_array_get(from, i);
        size_t found = at;
        while (found < count && !(same(json_array_get(to, found), entry, key) &&
                                  same(json_array_get(to, found), entry, other_key)))
            found++;
        if (found == count)
            continue;
        json_object_update_missing(json_array_get(to, found), entry);
        at = found + 1;
    }
}

void page_json_put(json_t *object, struct buf *out)
{
    char *text AUTO_FREE = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(16));
    if (text != NULL)
        buf_puts(out, text);
    json_decref(object);
}

json_t *page_json_job(const struct job *job, json_t *usage)
{
    json_t *object = status_json(job);
    const json_t *age = json_object_get(usage, "sampled_s");
    KIND_TELL(job, status, object);
    merge(json_object_get(object, "hosts"), json_object_get(usage, "hosts"), "host", "host");
    merge(json_object_get(object, "ranks"), json_object_get(usage, "ranks"), "rank", "pid");
    usage_marks_set(object);
    if (age != NULL)
        json_object_set(object, "sampled_s", (json_t *)age);
    json_object_set_new(object, "now", json_real((double)(clock_wall_ns() / 1000) / 1e6));
    if (job->settings->page_file != NULL)
        json_object_set_new(object, "page_file", json_text(job->settings->page_file));
    json_decref(usage);
    return object;
}

struct page_lines {
    json_t *list;
    size_t line_max;
};

static void add_line(void *context, const struct recent_piece *line)
{
    const struct page_lines *lines = context;
    json_t *object = json_line(line, lines->line_max);
    if (line->is_stderr)
        json_object_set_new(object, "stderr", json_true());
    json_array_append_new(lines->list, object);
}

static json_t *lines_json(const struct recent *recent, size_t most, size_t line_max)
{
    struct page_lines lines = {json_array(), line_max};
    if (recent != NULL)
        recent_walk_lines(recent, most, add_line, &lines);
    return lines.list;
}

/* A rank of an earlier epoch still has its lines. */
bool page_json_has_output(const struct job *job, int rank)
{
    return rank < job->plan->size || rank_tails_of(job_part(job, rank_tails), rank) != NULL ||
           rank_tails_bar(job_part(job, rank_tails), rank) != NULL;
}

json_t *page_json_output(const struct job *job, int rank)
{
    json_t *object = json_object();
    const char *bar = rank < 0 ? NULL : rank_tails_bar(job_part(job, rank_tails), rank);
    if (rank >= 0)
        json_object_set_new(object, "rank", json_integer(rank));
    if (bar != NULL) {
        char *copy AUTO_FREE = mem_strdup(bar);
        plain_valid(copy, strlen(copy));
        json_object_set_new(object, "bar", json_text(copy));
    }
    json_object_set_new(object, "lines",
                        lines_json(rank < 0 ? job_part(job, recent)
                                            : rank_tails_of(job_part(job, rank_tails), rank),
                                   PAGE_LINES, SIZE_MAX));
    return object;
}

static json_t *failed_json(const struct job *job)
{
    json_t *list = json_array();
    for (int seat = 0; seat < job->ranks.size && json_array_size(list) < END_RANKS; seat++) {
        const struct rank_record *record = &job->ranks.records[seat];
        bool failed = record->state >= RANK_EXITED && (record->signaled || record->code != 0);
        if (!failed || record->ended_by_us || record->exec_failed)
            continue;
        json_t *rank = json_object();
        json_object_set_new(rank, "rank", json_integer(record->rank));
        json_object_set_new(rank, record->signaled ? "signal" : "exit_code",
                            json_integer(record->code));
        json_object_set_new(rank, "ended", json_wall_time(job, record->ended_ns));
        json_array_append_new(list, rank);
    }
    return list;
}

json_t *page_json_end(const struct job *job)
{
    struct buf failure AUTO_BUF = BUF_INIT(FAILURE_MAX);
    json_t *object = record_json_verdict(job);
    report_failure(job, &failure);
    double up_s = (double)(job_end_ns(job) - job->request->begun_ns) / 1e9;
    json_object_set_new(object, "up_s", json_real(up_s));
    json_object_set_new(object, "ranks", failed_json(job));
    json_object_set_new(object, "lines",
                        lines_json(job_part(job, recent), END_LINES, END_LINE_MAX));
    json_t *progress = progress_json_job(job);
    if (json_object_get(progress, "percent") != NULL)
        json_object_set(object, "percent", json_object_get(progress, "percent"));
    json_decref(progress);
    if (failure.length > 0 && failure.length <= END_FAILURE_MAX)
        json_object_set_new(object, "failure", json_text(buf_text(&failure)));
    return object;
}
