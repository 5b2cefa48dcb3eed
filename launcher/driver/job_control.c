/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What other commands can see of a job and do with it: the control socket and the record
 * (driver/control/). Both are optional: a job runs without them.
 *
 * Most jobs are tests that end soon, and a job must start as fast as it can. So the socket appears
 * AFTER_MS after the job has begun. A job that has ended by then only gets the record of its end.
 */
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/status.h"
#include "driver/control/control.h"
#include "driver/control/folder.h"
#include "driver/control/record.h"
#include "driver/end/teardown.h"
#include "driver/job/job_kind.h"
#include "driver/job/part.h"
#include "driver/reach/reach.h"
#include "driver/run/run.h"
#include "driver/tell/json_text.h"
#include "driver/tell/line_log.h"
#include "driver/tell/tell.h"

#define AFTER_MS 50
#define WAITS_MAX ((size_t)4096)
#define MIB ((int64_t)1 << 20)

struct job_control {
    struct job *job;
    struct loop_timer *timer;
    int folder; /* -1: not opened */
    struct job_record *record;
    struct control *control; /* NULL: it could not be created, or not yet */
    int started_fd;          /* of --detach; -1: none, or all ranks have started */
    struct loop_fd *starter; /* watches it; NULL likewise */
    bool opened, ended;
};

/* What the job waits for before its ranks run. NULL: nothing. */
static char *waits_for(const struct job *job)
{
    struct buf text AUTO_BUF = BUF_INIT(WAITS_MAX);
    if (job->kind->many_epochs || job->state > JOB_PREPARING)
        return NULL;
    reach_describe_missing(job, &text);
    return text.length == 0 ? NULL : mem_printf("hosts:%s", buf_text(&text));
}

static json_t *status(void *context, const struct control_asked *asked, struct error *err)
{
    (void)err;
    const struct job *job = context;
    char *waits AUTO_FREE = waits_for(job);
    json_t *object = status_json(job);
    control_sign(asked, object);
    if (waits != NULL)
        json_object_set_new(object, "waits_for", json_text(waits));
    KIND_TELL(job, status, object);
    PARTS_TELL(job, status, object);
    return object;
}

/* told() answers. */
static json_t *wait_for_end(void *context, const struct control_asked *asked, struct error *err)
{
    (void)context, (void)asked, (void)err;
    return NULL;
}

static json_t *not_elastic(void *context, const struct control_asked *asked, struct error *err)
{
    (void)context, (void)asked;
    error_set(err, "this job is not elastic, so its hosts cannot change");
    return NULL;
}

/* An elastic job answers the last three itself. */
static const struct control_rule requests[] = {{"status", status},     {"wait", wait_for_end},
                                               {"drain", not_elastic}, {"undrain", not_elastic},
                                               {"add", not_elastic},   {NULL}};

static const struct control_rule *find_rule(void *context, const char *name)
{
    const struct job *job = context;
    const struct control_rule *rule = control_rule_of(job->kind->requests, name);
    int at = 0;
    const struct driver_part *part = rule == NULL ? parts_next(job, &at) : NULL;
    for (; part != NULL && rule == NULL; part = parts_next(job, &at))
        rule = control_rule_of(part->requests, name);
    return rule;
}

static int64_t wall_s(void)
{
    return clock_wall_ns() / 1000000000;
}

static int open_folder(struct job_control *control, struct error *err)
{
    if (control->folder < 0)
        control->folder = job_folder_open(err);
    return control->folder < 0 ? -1 : 0;
}

static void log_piece(void *context, const struct recent_piece *piece)
{
    line_log_add(context, piece, false);
}

/* The log begins with what the job has shown so far. */
static void open_log(const struct job_control *control)
{
    struct job *job = control->job;
    char *own AUTO_FREE = job_folder_path(), *other AUTO_FREE = record_log_folder(job);
    char *path AUTO_FREE =
        mem_printf("%s/%s", other == NULL ? own : other, job_record_name(control->record));
    int64_t bytes = job->settings->log_size * MIB;
    if (bytes == 0)
        return;
    int folder AUTO_FD =
        fd_open(other == NULL ? own : other, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (folder >= 0)
        job_folder_remove_log(folder, job_record_name(control->record));
    job->own[PART_line_log] = line_log_create(job->loop, job->output, path, bytes);
    recent_walk(job_part(job, recent), log_piece, job_part(job, line_log));
}

static int open_all(struct job_control *control, struct error *err)
{
    struct job *job = control->job;
    if (open_folder(control, err) < 0)
        return -1;
    job_folder_tidy(control->folder, wall_s());
    json_t *facts = record_json_begin(job);
    control->record = job_record_create(control->folder, job->request->job_id, facts, err);
    json_decref(facts);
    if (control->record == NULL)
        return -1;
    open_log(control);
    struct control_answers answers = {job_record_name(control->record), find_rule, job};
    control->control = control_create(job->loop, control->folder, &answers, err);
    return control->control == NULL ? -1 : 0;
}

/* Nobody could attach to a detached job without these. */
static void begin(void *context)
{
    struct job_control *control = context;
    struct error err = ERROR_INIT;
    if (control->opened)
        return;
    control->opened = true;
    if (open_all(control, &err) == 0)
        return;
    if (control->started_fd >= 0)
        teardown_launcher(control->job, STATUS_LAUNCHER, err.text);
    else
        log_info(&control->job->log, "no control socket: %s", err.text);
}

static void leave_starter(struct job_control *control)
{
    loop_fd_destroy(control->starter);
    control->starter = NULL;
    fd_close(&control->started_fd);
}

/* Nobody would learn the id of the job. */
static void starter_gone(void *context, int what)
{
    (void)what;
    struct job_control *control = context;
    leave_starter(control);
    if (control->job->state < JOB_ENDING)
        teardown_launcher(control->job, STATUS_LAUNCHER,
                          "hvdrun --detach, which waited for the start, was killed");
}

/* A worker may have started or ended. Tells a launcher that detaches as soon as all have started.
 */
static void ranks_changed(struct job *job)
{
    struct job_control *control = job_part(job, job_control);
    if (control == NULL || control->started_fd < 0)
        return;
    int started = job->ranks.running + job->ranks.exited;
    if (job->plan->size == 0 || started < job->plan->size || job->state >= JOB_ENDING)
        return;
    begin(control);
    if (control->control == NULL)
        return;
    const char *name = job_record_name(control->record);
    fd_write_all(control->started_fd, name, strlen(name));
    hangup_leave(true);
    leave_starter(control);
}

static int open_part(struct job *job, struct error *err)
{
    (void)err;
    if (!job->kind->has_workers)
        return 0;
    struct job_control *control = MEM_NEW(
        (struct job_control){.job = job, .folder = -1, .started_fd = job->request->started_fd});
    control->timer = loop_timer_create(job->loop, begin, control);
    loop_timer_set(control->timer, job->kind->many_epochs ? 0 : AFTER_MS);
    if (control->started_fd >= 0) {
        control->starter = loop_fd_create(job->loop, control->started_fd, starter_gone, control);
        loop_fd_watch(control->starter, LOOP_READ); /* a pipe without a reader wakes it */
    }
    job->own[PART_job_control] = control;
    return 0;
}

static void write_end(struct job_control *control)
{
    const struct job *job = control->job;
    struct error err = ERROR_INIT;
    int result = open_folder(control, &err);
    json_t *end = result < 0 ? NULL : record_json_end(job, control->record == NULL);
    if (end != NULL)
        PARTS_TELL(job, record, end);
    if (result == 0 && control->record != NULL)
        result = job_record_finish(control->record, end, &err);
    else if (result == 0)
        result = job_journal_add(control->folder, end, &err);
    json_decref(end);
    if (result < 0)
        log_info(&job->log, "%s", err.text);
}

/* Writes the record of the end, and answers those that wait for it. */
static void told(struct job *job)
{
    struct job_control *control = job_part(job, job_control);
    if (control == NULL || control->ended)
        return;
    control->ended = true;
    loop_timer_clear(control->timer);
    /* First what needs memory: without it this process ends, and then the job must not look as if
     * it had ended with a socket. */
    json_t *verdict = record_json_verdict(control->job);
    write_end(control);
    job_record_destroy(control->record); /* from now on the job does not count as running */
    control->record = NULL;
    if (control->control != NULL)
        control_finish(control->control, verdict);
    json_decref(verdict);
}

static void close_part(struct job *job)
{
    struct job_control *control = job_part(job, job_control);
    leave_starter(control);
    control_destroy(control->control);
    job_record_destroy(control->record);
    loop_timer_destroy(control->timer);
    fd_close(&control->folder);
    free(control);
}

const struct driver_part job_control_part = {.name = "job_control",
                                             .open = open_part,
                                             .close = close_part,
                                             .ranks_changed = ranks_changed,
                                             .told = told,
                                             .requests = requests};
