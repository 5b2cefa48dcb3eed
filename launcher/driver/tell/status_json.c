/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/tell/tell.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/plain.h"
#include "driver/tell/json_text.h"
#include "driver/tell/recent.h"
#include "model/allocation/allocation.h"

#define COMMAND_MAX ((size_t)1024)
#define FAILURE_MAX ((size_t)64 * 1024)
#define VERSION 1

char *status_command(const struct job *job)
{
    struct buf line AUTO_BUF = BUF_INIT(COMMAND_MAX + 1);
    const struct app_list *apps = job->request->apps;
    for (size_t i = 0; apps != NULL && i < apps->count; i++) {
        const struct strv *argv = &apps->items[i].argv;
        if (i > 0)
            buf_puts(&line, " : ");
        for (size_t word = 0; word < argv->count; word++) {
            if (word > 0)
                buf_putc(&line, ' ');
            if (buf_puts(&line, argv->items[word]) < 0)
                buf_puts(&line, "...");
        }
    }
    char *text = buf_take(&line);
    plain_valid(text, strlen(text));
    return text;
}

static const char *host_state(const struct node_link *node)
{
    if (node->suspect && node_link_alive(node))
        return "silent";
    switch (node->state) {
    case NODE_CALLING:
    case NODE_STARTING: return "connecting";
    case NODE_UP:
    case NODE_READY:
    case NODE_RUNNING: return "up";
    case NODE_ENDING: return "ending";
    case NODE_ENDED:
    case NODE_CLOSING:
    case NODE_GONE: return "ended";
    case NODE_LOST: return "lost";
    case NODE_UNREACHED: return "not reached";
    }
    return "unknown";
}

static json_t *host_json(const struct job *job, const struct node_link *node)
{
    json_t *object = json_object();
    json_t *ranks = json_array();
    json_object_set_new(object, "host", json_text(node->host));
    json_object_set_new(object, "state", json_string(host_state(node)));
    if (node->place >= 0) {
        const struct plan_node *place = &job->plan->nodes[node->place];
        json_object_set_new(object, "slots", json_integer(place->slots));
        for (int i = 0; i < place->local_size; i++)
            json_array_append_new(ranks, json_integer(place->ranks[i]));
    }
    json_object_set_new(object, "ranks", ranks);
    return object;
}

static json_t *rank_json(const struct job *job, int seat)
{
    const struct rank_record *record = &job->ranks.records[seat];
    json_t *object = json_object();
    json_object_set_new(object, "rank", json_integer(record->rank));
    json_object_set_new(object, "host", json_text(job_seat_host(job, seat)));
    json_add_world(object, record);
    json_object_set_new(object, "epoch", json_integer(record->epoch));
    json_object_set_new(object, "state", json_string(rank_state_name(record->state)));
    if (record->pid > 0)
        json_object_set_new(object, "pid", json_integer(record->pid));
    int64_t until = record->ended_ns != 0 ? record->ended_ns : clock_mono_ns();
    if (record->started_ns != 0)
        json_object_set_new(object, "up_s", json_real((double)(until - record->started_ns) / 1e9));
    if (record->ended_ns != 0)
        json_object_set_new(object, "ended", json_wall_time(job, record->ended_ns));
    if (record->state >= RANK_EXITED && !record->exec_failed)
        json_object_set_new(object, record->signaled ? "signal" : "exit_code",
                            json_integer(record->code));
    if (record->straggles && record->state == RANK_RUNNING)
        json_object_set_new(object, "straggler", json_true());
    if (record->silent && record->state == RANK_RUNNING)
        json_object_set_new(object, "silent", json_true());
    if (record->stopped != NULL && record->state == RANK_RUNNING) {
        json_object_set_new(object, "stopped", json_text(record->stopped));
        json_object_set_new(object, "stopped_s",
                            json_real((double)(clock_mono_ns() - record->stopped_ns) / 1e9));
    }
    json_t *progress = progress_json_rank(job, seat);
    if (progress != NULL)
        json_object_set_new(object, "progress", progress);
    return object;
}

/* Of a seat that was taken in an earlier epoch, only a worker that still runs. */
static json_t *ranks_json(const struct job *job)
{
    json_t *ranks = json_array();
    for (int seat = 0; seat < job->ranks.size; seat++) {
        const struct rank_record *record = &job->ranks.records[seat];
        bool present = job_epoch_runs(job, record->epoch) || record->state == RANK_RUNNING;
        if (present && record->epoch != 0)
            json_array_append_new(ranks, rank_json(job, seat));
    }
    return ranks;
}

/* From "job" to "folder", and "size" and "started". */
static void add_identity(const struct job *job, json_t *object)
{
    char *command AUTO_FREE = status_command(job);
    json_object_set_new(object, "job", json_text(job->request->job_id));
    if (job->settings->job_name != NULL)
        json_object_set_new(object, "name", json_text(job->settings->job_name));
    json_object_set_new(object, "pid", json_integer(getpid()));
    json_object_set_new(object, "command", json_text(command));
    json_object_set_new(object, "folder", json_text(job->request->wdir));
    json_object_set_new(object, "size", json_integer(job->plan->size));
    json_object_set_new(object, "started", json_wall_time(job, job->request->begun_ns));
}

json_t *status_json(const struct job *job)
{
    const struct allocation *allocation = job->request->allocation;
    json_t *hosts = json_array();
    for (int i = 0; i < job->node_count; i++)
        json_array_append_new(hosts, host_json(job, job->nodes[i]));
    json_t *object = json_object();
    json_object_set_new(object, "version", json_string(HVDRUN_VERSION));
    add_identity(job, object);
    json_object_set_new(object, "id", json_text(job->request->job_id));
    json_object_set_new(object, "state", json_string(job_state_name(job->state)));
    json_object_set_new(object, "up_s",
                        json_real((double)(clock_mono_ns() - job->request->begun_ns) / 1e9));
    json_object_set_new(object, "restarts",
                        json_integer(allocation == NULL ? 0 : allocation->restart_count));
    int64_t last = recent_last_ns(job_part(job, recent));
    if (last != 0) {
        int64_t age = clock_wall_ns() - last; /* the clock may have been set back */
        json_object_set_new(object, "last_output_s", json_real(age > 0 ? (double)age / 1e9 : 0));
    }
    json_t *progress = progress_json_job(job);
    if (progress != NULL)
        json_object_set_new(object, "progress", progress);
    json_object_set_new(object, "hosts", hosts);
    json_object_set_new(object, "ranks", ranks_json(job));
    json_object_set_new(object, "stalls", report_stalls_now(job));
    return object;
}

/* The record */

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
    add_identity(job, object);
    const char *slurm_job = getenv("SLURM_JOB_ID");
    if (slurm_job != NULL) /* not that of the allocation: -H may name the hosts */
        json_object_set_new(object, "slurm_job", json_text(slurm_job));
    char *log_folder AUTO_FREE = record_log_folder(job);
    if (log_folder != NULL)
        json_object_set_new(object, "log_folder", json_text(log_folder));
    json_object_set_new(object, "host_count", json_integer(job->node_count));
    return object;
}

static void add_line(void *list, const struct recent_piece *line)
{
    json_t *object = json_line(line, RECORD_LINE_BYTES);
    json_object_set_new(object, "stream", json_string(line->is_stderr ? "stderr" : "stdout"));
    json_array_append_new(list, object);
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
    json_t *lines = json_array();
    bool lists =
        job->ranks.size + job->node_count <= RECORD_RANKS && !(brief && job->verdict.status == 0);
    json_t *report = report_object(job, lists);
    json_object_del(json_object_get(report, "job"), "argv"); /* -x may have secrets */
    report_failure(job, &failure);
    json_object_set_new(object, "ended", json_wall_time(job, job_end_ns(job)));
    json_object_update_new(object, verdict);
    json_t *progress = progress_json_job(job);
    if (progress != NULL)
        json_object_set_new(object, "progress", progress);
    if (failure.length > 0)
        json_object_set_new(object, "failure", json_text(buf_text(&failure)));
    json_object_set_new(object, "report", report);
    recent_walk_lines(job_part(job, recent), RECORD_LINES, add_line, lines);
    json_object_set_new(object, "lines", lines);
    return object;
}
