/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/tell/record_json.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "driver/tell/json_text.h"
#include "driver/tell/progress_json.h"
#include "driver/tell/recent.h"
#include "driver/tell/report.h"
#include "driver/tell/status_json.h"
#include "model/exit/tail.h"

#define FAILURE_MAX ((size_t)64 * 1024)
#define VERSION 1

char *record_log_folder(const struct job *job)
{
    const char *folder = job->settings->log_dir;
    if (folder == NULL || folder[0] == '\0')
        return NULL;
    return folder[0] == '/' ? mem_strdup(folder) : mem_printf("%s/%s", job->request->wdir, folder);
}

json_t *record_json_begin(const struct job *job)
{
    json_t *object = json_object();
    json_object_set_new(object, "version", json_integer(VERSION));
    status_json_identity(job, object);
    const char *slurm_job = getenv("SLURM_JOB_ID");
    if (slurm_job != NULL) /* not that of the allocation: -H may name the hosts */
        json_object_set_new(object, "slurm_job", json_text(slurm_job));
    char *log_folder AUTO_FREE = record_log_folder(job);
    if (log_folder != NULL)
        json_object_set_new(object, "log_folder", json_text(log_folder));
    json_object_set_new(object, "host_count", json_integer(job->node_count));
    return object;
}

/* A line that recent_walk() has shown. Its text stays valid, because nothing is added meanwhile. */
struct last_line {
    int64_t wall_ns;
    int rank;
    bool is_stderr;
    const char *text;
    size_t length;
};

struct last_lines {
    struct last_line items[RECORD_LINES]; /* a ring */
    size_t total;
};

static void add_lines(void *context, const struct recent_piece *piece)
{
    struct last_lines *lines = context;
    for (size_t at = 0; at < piece->length;) {
        const char *text = piece->text + at;
        const char *end = memchr(text, '\n', piece->length - at);
        size_t length = end != NULL ? (size_t)(end - text) : piece->length - at;
        lines->items[lines->total++ % RECORD_LINES] =
            (struct last_line){piece->wall_ns, piece->rank, piece->is_stderr, text, length};
        at += length + 1;
    }
}

static json_t *line_json(const struct last_line *line)
{
    size_t length = line->length < RECORD_LINE_BYTES ? line->length : RECORD_LINE_BYTES;
    char *text AUTO_FREE = mem_alloc(length + 1);
    memcpy(text, line->text, length);
    tail_make_valid(text, length);
    json_t *object = json_object();
    json_object_set_new(object, "time", json_real((double)(line->wall_ns / 1000) / 1e6));
    json_object_set_new(object, "rank", line->rank < 0 ? json_null() : json_integer(line->rank));
    json_object_set_new(object, "stream", json_string(line->is_stderr ? "stderr" : "stdout"));
    json_object_set_new(object, "text", json_text(text));
    return object;
}

static json_t *lines_json(const struct job *job)
{
    struct last_lines last = {.total = 0};
    json_t *list = json_array();
    recent_walk(job_part(job, recent), add_lines, &last);
    size_t first = last.total > RECORD_LINES ? last.total - RECORD_LINES : 0;
    for (size_t i = first; i < last.total; i++)
        json_array_append_new(list, line_json(&last.items[i % RECORD_LINES]));
    return list;
}

json_t *record_json_verdict(const struct job *job)
{
    const struct verdict *verdict = &job->verdict;
    json_t *object = json_object();
    json_object_set_new(object, "status", json_integer(verdict->status));
    json_object_set_new(object, "cause", json_string(exit_cause_name(verdict->cause)));
    json_object_set_new(object, "text", json_text(verdict->explanation));
    return object;
}

json_t *record_json_end(const struct job *job, bool brief)
{
    struct buf failure AUTO_BUF = BUF_INIT(FAILURE_MAX);
    json_t *object = record_json_begin(job), *verdict = record_json_verdict(job);
    bool lists =
        job->ranks.size + job->node_count <= RECORD_RANKS && !(brief && job->verdict.status == 0);
    json_t *report = report_object(job, &job->verdict, lists);
    json_object_del(json_object_get(report, "job"), "argv"); /* -x may have secrets */
    report_failure(job, &job->verdict, &failure);
    json_object_set_new(object, "ended", json_wall_time(job, job_end_ns(job)));
    json_object_update_new(object, verdict);
    json_t *progress = progress_json_job(job);
    if (progress != NULL)
        json_object_set_new(object, "progress", progress);
    if (failure.length > 0)
        json_object_set_new(object, "failure", json_text(buf_text(&failure)));
    json_object_set_new(object, "report", report);
    json_object_set_new(object, "lines", lines_json(job));
    return object;
}
