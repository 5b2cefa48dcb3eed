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
#include "base/parse.h"
#include "base/status.h"
#include "driver/control/control.h"
#include "driver/control/folder.h"
#include "driver/control/journal.h"
#include "driver/control/later.h"
#include "driver/control/record.h"
#include "driver/end/teardown.h"
#include "driver/job/job.h"
#include "driver/job/job_kind.h"
#include "driver/job/part.h"
#include "driver/reach/reach.h"
#include "driver/run/evidence_folder.h"
#include "driver/run/hang_culprit.h"
#include "driver/run/hangup.h"
#include "driver/run/look.h"
#include "driver/run/user_signals.h"
#include "driver/tell/day_time.h"
#include "driver/tell/json_text.h"
#include "driver/tell/line_log.h"
#include "driver/tell/record_json.h"
#include "driver/tell/report.h"
#include "driver/tell/status_json.h"
#include "features/metrics/metrics_out_driver.h"
#include "features/usage/usage_json_driver.h"
#include "stacks/tree.h"

/* `hvdrun stacks`: answers to clients of the control socket that ask where the ranks are. */

struct job_stacks;

#define TEXT_MAX ((size_t)16 << 20)

struct request {
    struct job_stacks *stacks;
    struct control_later *later;
    bool *wanted; /* by rank; NULL: all */
    int count;
};

struct job_stacks {
    struct job *job;
    struct request **requests;
    size_t count;
};

static struct job_stacks *job_stacks_create(struct job *job)
{
    struct job_stacks *stacks = mem_alloc(sizeof(*stacks));
    *stacks = (struct job_stacks){.job = job};
    return stacks;
}

static void request_destroy(struct request *request)
{
    free(request->wanted);
    free(request);
}

static void drop(struct job_stacks *stacks, struct request *request)
{
    size_t kept = 0;
    for (size_t i = 0; i < stacks->count; i++) {
        if (stacks->requests[i] != request)
            stacks->requests[kept++] = stacks->requests[i];
    }
    stacks->count = kept;
    request_destroy(request);
}

static json_t *answer_of(const struct ask *look, const struct look_ranks *ranks)
{
    const struct stack_tree_style style = {"", "", STACK_TREE_ALL_LINES};
    struct buf text AUTO_BUF = BUF_INIT(TEXT_MAX), missing AUTO_BUF = BUF_INIT(TEXT_MAX);
    struct buf remarks AUTO_BUF = BUF_INIT(TEXT_MAX), odd AUTO_BUF = BUF_INIT(TEXT_MAX);
    struct stack_tree *tree = look_tree(look, true, ranks);
    json_t *answer = json_object();
    ask_missing(look, &missing);
    look_remarks(look, &remarks);
    hang_culprit_place(look, ranks, &odd);
    stack_tree_print(tree, &style, &text);
    json_object_set_new(answer, "stacks", report_stack_tree(tree));
    json_object_set_new(answer, "text", json_text(buf_text(&text)));
    json_object_set_new(answer, "missing",
                        missing.length > 0 ? json_text(buf_text(&missing)) : json_null());
    json_object_set_new(answer, "remarks",
                        remarks.length > 0 ? json_text(buf_text(&remarks)) : json_null());
    json_object_set_new(answer, "odd", odd.length > 0 ? json_text(buf_text(&odd)) : json_null());
    stack_tree_destroy(tree);
    return answer;
}

static void looked(void *context, const struct ask *look)
{
    struct request *request = context;
    struct look_ranks ranks = {request->wanted, request->count};
    struct control_later *later = request->later;
    json_t *answer = answer_of(look, request->wanted != NULL ? &ranks : NULL);
    drop(request->stacks, request);
    control_later_answer(later, answer);
}

static void want(void *context, int64_t rank)
{
    const struct request *request = context;
    request->wanted[rank] = true;
}

/* -1: there is no such rank, or none runs. 0: `later` is taken. `ranks` is NULL for all.
 * `native`: with native frames. */
static int job_stacks_ask(struct job_stacks *stacks, const char *ranks, bool native,
                          struct control_later *later, struct error *err)
{
    struct job *job = stacks->job;
    struct request *request = NULL;
    if (job->ranks.running == 0)
        return error_set(err, "no rank runs");
    request = mem_alloc(sizeof(*request));
    *request = (struct request){.stacks = stacks, .later = later, .count = job->plan->size};
    if (ranks != NULL)
        request->wanted = mem_array((size_t)request->count + 1, sizeof(*request->wanted));
    if (ranks != NULL && parse_ranks(ranks, request->count - 1, want, request, err) < 0) {
        request_destroy(request);
        return -1;
    }
    control_later_take(later);
    stacks->requests = mem_resize_array(stacks->requests, stacks->count + 1, sizeof(request));
    stacks->requests[stacks->count++] = request;
    look_ask(job, native, looked, request);
    return 0;
}

/* Clients that still wait get the answer that the job has ended. Accepts NULL. */
static void job_stacks_destroy(struct job_stacks *stacks)
{
    for (size_t i = 0; stacks != NULL && i < stacks->count; i++) {
        struct request *request = stacks->requests[i];
        ask_forget(stacks->job, request);
        control_later_answer(request->later, json_pack("{s:s}", "error", "the job has ended"));
        request_destroy(request);
    }
    if (stacks != NULL)
        free(stacks->requests);
    free(stacks);
}

#define AFTER_MS 50
#define WAITS_MAX ((size_t)4096)
#define MIB ((int64_t)1 << 20)

struct job_control {
    struct job *job;
    struct loop_timer *timer;
    int folder; /* -1: not opened */
    struct job_record *record;
    struct control *control; /* NULL: it could not be created, or not yet */
    struct job_stacks *stacks;
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

static json_t *status(void *context)
{
    const struct job_control *control = context;
    char *waits AUTO_FREE = waits_for(control->job);
    json_t *object = status_json(control->job);
    json_object_set_new(object, "protocol", json_integer(CONTROL_PROTOCOL));
    if (control->record != NULL) /* of two jobs with one id, the second has another name here */
        json_object_set_new(object, "job", json_text(job_record_name(control->record)));
    if (waits != NULL)
        json_object_set_new(object, "waits_for", json_text(waits));
    kind_status(control->job, object);
    if (metrics_out_url(control->job) != NULL) {
        json_object_set_new(object, "metrics", json_text(metrics_out_url(control->job)));
        json_object_set_new(object, "page", json_text(metrics_out_page(control->job)));
    }
    if (metrics_out_problem(control->job) != NULL)
        json_object_set_new(object, "no_metrics", json_text(metrics_out_problem(control->job)));
    return object;
}

static json_t *usage(void *context)
{
    const struct job_control *control = context;
    json_t *object = usage_json(control->job);
    json_object_set_new(object, "protocol", json_integer(CONTROL_PROTOCOL));
    if (control->record != NULL) /* as above */
        json_object_set_new(object, "job", json_text(job_record_name(control->record)));
    return object;
}

/* "'hvdrun stop' (user alice, 14:03:22)" */
static char *text_of(const struct control_asker *asker)
{
    char now[DAY_TIME_SIZE];
    day_time_text(clock_wall_ns(), now);
    const char *user = asker->user;
    char *command AUTO_FREE = asker->command == NULL ? mem_strdup("a request to the control socket")
                                                     : mem_printf("'hvdrun %.20s'", asker->command);
    return mem_printf("%s (%s%.40s%s%s)", command, user != NULL ? "user " : "",
                      user != NULL ? user : "", user != NULL ? ", " : "", now);
}

static int stop(void *context, const struct control_asker *asker, int64_t grace_ms,
                struct error *err)
{
    const struct job_control *control = context;
    char *by AUTO_FREE = text_of(asker);
    (void)err;
    if (control->job->state < JOB_CLOSING) /* later, it would end the output instead */
        user_signals_stop(control->job, by, grace_ms);
    return 0;
}

static int send_signal(void *context, const struct control_asker *asker, int number,
                       const char *ranks, struct error *err)
{
    const struct job_control *control = context;
    char *by AUTO_FREE = text_of(asker);
    return user_signals_send(control->job, number, by, ranks, err);
}

static int stacks(void *context, const char *ranks, bool native, struct control_later *later,
                  struct error *err)
{
    const struct job_control *control = context;
    return job_stacks_ask(control->stacks, ranks, native, later, err);
}

static int drain(void *context, const char *host, bool has_deadline, int64_t within_ms,
                 struct error *err)
{
    const struct job_control *control = context;
    return kind_drain(control->job, host, has_deadline, within_ms, err);
}

static int undrain(void *context, const char *host, struct error *err)
{
    const struct job_control *control = context;
    return kind_undrain(control->job, host, err);
}

static int add(void *context, const struct host_list *hosts, struct error *err)
{
    const struct job_control *control = context;
    return kind_add(control->job, hosts, err);
}

static const struct control_ops ops = {.status = status,
                                       .usage = usage,
                                       .stop = stop,
                                       .signal = send_signal,
                                       .stacks = stacks,
                                       .drain = drain,
                                       .undrain = undrain,
                                       .add = add};

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
    control->control = control_create(job->loop, control->folder, job_record_name(control->record),
                                      &ops, control, err);
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
static void heard(struct job *job)
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
    struct job_control *control = mem_alloc(sizeof(*control));
    *control =
        (struct job_control){.job = job, .folder = -1, .started_fd = job->request->started_fd};
    control->stacks = job_stacks_create(job);
    control->timer = loop_timer_create(job->loop, begin, control);
    loop_timer_set(control->timer, job->kind->many_epochs ? 0 : AFTER_MS);
    if (control->started_fd >= 0) {
        control->starter = loop_fd_create(job->loop, control->started_fd, starter_gone, control);
        loop_fd_watch(control->starter, LOOP_READ); /* a pipe without a reader wakes it */
    }
    job->own[PART_job_control] = control;
    return 0;
}

/* Where the evidence of its failures is. */
static void add_evidence(const struct job *job, json_t *end)
{
    const struct strv *paths = evidence_folder_paths(job);
    json_t *list = json_array();
    for (size_t i = 0; i < paths->count; i++) {
        const char *path = paths->items[i];
        char *whole AUTO_FREE =
            path[0] == '/' ? mem_strdup(path) : mem_printf("%s/%s", job->request->wdir, path);
        json_array_append_new(list, json_text(whole));
    }
    if (paths->count > 0)
        json_object_set(end, "evidence", list);
    json_decref(list);
}

static void write_end(struct job_control *control)
{
    const struct job *job = control->job;
    struct error err = ERROR_INIT;
    int result = open_folder(control, &err);
    json_t *end = result < 0 ? NULL : record_json_end(job, control->record == NULL);
    if (end != NULL)
        add_evidence(job, end);
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
    job_stacks_destroy(control->stacks);
    control_destroy(control->control);
    job_record_destroy(control->record);
    loop_timer_destroy(control->timer);
    fd_close(&control->folder);
    free(control);
}

const struct driver_part job_control_part = {
    .name = "job_control", .open = open_part, .close = close_part, .heard = heard, .told = told};
