/* SPDX-License-Identifier: Apache-2.0 */
/* Where the metrics of a job go: the HTTP server of --metrics, which has the status page too, and
 * the file of --metrics-file. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"
#include "driver/job/job.h"
#include "driver/job/job_kind.h"
#include "driver/job/part.h"
#include "driver/tell/json_text.h"
#include "driver/tell/recent.h"
#include "features/metrics/metrics_driver.h"
#include "features/usage/usage_driver.h"

const char metrics_feature[] = "--metrics, --metrics-file and the status page";

/* As others must never see half of it: written beside it, and renamed. -1 and errno. */
static int write_file(const char *path, const char *temporary, const struct buf *text)
{
    int fd AUTO_FD =
        fd_open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd >= 0 && fd_write_all(fd, buf_text(text), text->length) == 0 &&
        rename(temporary, path) == 0)
        return 0;
    int errnum = errno;
    if (fd >= 0)
        unlink(temporary);
    errno = errnum;
    return -1;
}

/*
 * The file of --metrics-file, for node_exporter's textfile collector: written anew every
 * METRICS_FILE_MS, in one step, and removed at the end of the job. Otherwise the last values would
 * live for ever. A file that cannot be written is one warning, and the job goes on.
 */
#define METRICS_FILE_MS 10000
#define FIRST_MS 1000 /* a job that ends at once needs none */

struct metrics_out {
    struct job *job;
    struct metrics_server *server;
    char *target;  /* the path of that file; NULL: none is written */
    char *problem; /* why there is no server; NULL: there is one, or none is wanted */

    /* Of the file; NULL: none is wanted */
    char *temporary;
    struct loop_timer *timer;
    bool written, complained;
};

/* In the same folder, and hidden: the collector reads all others. */
static char *temporary_for(const char *path)
{
    const char *slash = strrchr(path, '/');
    int folder = slash == NULL ? 0 : (int)(slash + 1 - path);
    return mem_printf("%.*s.%s.tmp", folder, path, path + folder);
}

static void write_now(struct metrics_out *metrics)
{
    struct job *job = metrics->job;
    const char *path = job->settings->metrics_file;
    struct buf text AUTO_BUF = BUF_INIT(METRICS_TEXT_MAX);
    metrics_text(job, EXPOSITION_TEXT, &text);
    if (write_file(path, metrics->temporary, &text) == 0) {
        metrics->written = true;
    } else if (!metrics->complained) {
        metrics->complained = true;
        log_warning(&job->log, "cannot write the metrics to %s: %s", path, strerrordesc_np(errno));
    }
    loop_timer_set(metrics->timer, METRICS_FILE_MS);
}

static void answered(void *context, const struct ask *ask)
{
    (void)ask;
    write_now(context);
}

static void is_due(void *context)
{
    struct metrics_out *metrics = context;
    struct job *job = metrics->job;
    bool over = job->state >= JOB_CLOSING;
    if (!over && !sampler_ask(job_part(job, sampler), answered, metrics))
        write_now(metrics);
}

static void open_file(struct metrics_out *metrics)
{
    struct job *job = metrics->job;
    metrics->temporary = temporary_for(job->settings->metrics_file);
    metrics->timer = loop_timer_create(job->loop, is_due, metrics);
    loop_timer_set(metrics->timer, FIRST_MS);
}

/*
 * A file DIR/JOB.json with the address of the job's metrics, for file_sd_configs of Prometheus.
 * Other users may read it. If SIGKILL ends hvdrun, it remains.
 */

#define TARGET_MAX ((size_t)64 << 10)

static void put_target(const struct job *job, const char *host, struct buf *out)
{
    json_t *labels = json_object(), *entry = json_object(), *list = json_array();
    json_object_set_new(labels, "hvdrun_job", json_text(job->request->job_id));
    if (job->settings->job_name != NULL)
        json_object_set_new(labels, "hvdrun_name", json_text(job->settings->job_name));
    json_object_set_new(entry, "targets", json_pack("[o]", json_text(host)));
    json_object_set_new(entry, "labels", labels);
    json_array_append_new(list, entry);
    char *dumped = json_dumps(list, JSON_COMPACT);
    buf_printf(out, "%s\n", dumped == NULL ? "[]" : dumped);
    free(dumped);
    json_decref(list);
}

/* `url` is that of the server. The path of the file, the caller's. NULL: it cannot be written,
 * which is a warning, or `url` is a Unix socket, from which Prometheus cannot read. */
static char *write_target(struct job *job, const char *folder, const char *url)
{
    static const char scheme[] = "http://";
    struct buf text AUTO_BUF = BUF_INIT(TARGET_MAX);
    if (!text_begins(url, scheme))
        return NULL;
    char *path = mem_printf("%s/%s.json", folder, job->request->job_id);
    char *temporary AUTO_FREE = mem_printf("%s.tmp", path);
    put_target(job, url + strlen(scheme), &text);
    if (write_file(path, temporary, &text) == 0)
        return path;
    log_warning(&job->log, "--metrics-targets: cannot write %s: %s", path, strerrordesc_np(errno));
    free(path);
    return NULL;
}

static int open_server(struct job *job, struct metrics_out *metrics, struct error *err)
{
    struct listen_address address;
    struct error problem = ERROR_INIT;
    if (listen_address_parse(job->settings->metrics, &address, err) < 0)
        return error_wrap(err, "%s", settings_place(job->settings, OPT_metrics));
    metrics->server = metrics_server_create(job, &address, &problem);
    if (metrics->server == NULL) {
        log_warning(&job->log, "no metrics: %s%s", problem.text,
                    problem.errnum == EADDRINUSE ? "; --metrics 0 takes a free port" : "");
        metrics->problem = mem_strdup(problem.text);
    } else if (job->settings->metrics_targets != NULL) {
        metrics->target = write_target(job, job->settings->metrics_targets,
                                       metrics_server_urls(metrics->server)->outside);
    }
    return 0;
}

static int open_part(struct job *job, struct error *err)
{
    const struct settings *settings = job->settings;
    if (!job->kind->has_workers)
        return 0;
    if (settings->metrics == NULL && settings->metrics_file == NULL)
        return 0;
    struct metrics_out *metrics = mem_alloc(sizeof(*metrics));
    metrics->job = job;
    job->own[PART_metrics_out] = metrics;
    if (settings->metrics != NULL)
        rank_tails_want(job);
    if (settings->metrics_file != NULL)
        open_file(metrics);
    return settings->metrics == NULL ? 0 : open_server(job, metrics, err);
}

/* Costs a little for each line, so it is done only for those who want it. */
static uint64_t count_lines(const uint8_t *bytes, size_t length)
{
    uint64_t lines = 0;
    const uint8_t *end = bytes + length, *at = memchr(bytes, '\n', length);
    for (; at != NULL; at = memchr(at + 1, '\n', (size_t)(end - at - 1)))
        lines++;
    return lines;
}

static void output(struct job *job, int seat, bool is_stderr, const void *bytes, size_t length)
{
    (void)is_stderr;
    if (job_part(job, metrics_out) != NULL)
        job->ranks.records[seat].output_lines += count_lines(bytes, length);
}

static void told(struct job *job)
{
    if (job_part(job, metrics_out) != NULL && job_part(job, metrics_out)->server != NULL)
        metrics_server_finish(job_part(job, metrics_out)->server);
}

static void close_part(struct job *job)
{
    struct metrics_out *metrics = job_part(job, metrics_out);
    metrics_server_destroy(metrics->server);
    ask_forget(job, metrics);
    loop_timer_destroy(metrics->timer);
    if (metrics->written)
        unlink(job->settings->metrics_file);
    free(metrics->temporary);
    if (metrics->target != NULL)
        unlink(metrics->target);
    free(metrics->target);
    free(metrics->problem);
    free(metrics);
}

/* Where the server is, or why there is none although the user wants one. */
static void status(const struct job *job, json_t *root)
{
    const struct metrics_out *metrics = job_part(job, metrics_out);
    if (metrics == NULL)
        return;
    if (metrics->server != NULL) {
        const struct metrics_urls *urls = metrics_server_urls(metrics->server);
        json_object_set_new(root, "metrics", json_text(urls->metrics));
        json_object_set_new(root, "page", json_text(urls->page));
    }
    if (metrics->problem != NULL)
        json_object_set_new(root, "no_metrics", json_text(metrics->problem));
}

/* An address that cannot be used is a warning, since a job must not fail for it. */
const struct driver_part metrics_out_part = {.name = "metrics_out",
                                             .open = open_part,
                                             .close = close_part,
                                             .output = output,
                                             .told = told,
                                             .status = status};
