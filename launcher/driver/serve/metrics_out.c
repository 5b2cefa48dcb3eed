/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/serve/metrics_out.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "driver/job/job_kind.h"
#include "driver/job/part.h"
#include "driver/serve/metrics_server.h"
#include "driver/serve/metrics_target.h"
#include "driver/usage/metrics_file.h"

struct metrics_out {
    struct metrics_server *server;
    struct metrics_file *file;
    struct metrics_target *target;
    char *problem; /* why there is no server; NULL: there is one, or none is wanted */
};

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
        metrics->target =
            metrics_target_create(job, job->settings->metrics_targets, metrics_out_url(job));
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
    job->own[PART_metrics_out] = metrics;
    if (settings->metrics_file != NULL)
        metrics->file = metrics_file_create(job, settings->metrics_file);
    return settings->metrics == NULL ? 0 : open_server(job, metrics, err);
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
    metrics_file_destroy(metrics->file);
    metrics_target_destroy(metrics->target);
    free(metrics->problem);
    free(metrics);
}

const char *metrics_out_url(const struct job *job)
{
    const struct metrics_out *metrics = job_part(job, metrics_out);
    return metrics != NULL && metrics->server != NULL ? metrics_server_url(metrics->server) : NULL;
}

const char *metrics_out_page(const struct job *job)
{
    const struct metrics_out *metrics = job_part(job, metrics_out);
    return metrics != NULL && metrics->server != NULL ? metrics_server_page(metrics->server) : NULL;
}

const char *metrics_out_problem(const struct job *job)
{
    return job_part(job, metrics_out) != NULL ? job_part(job, metrics_out)->problem : NULL;
}

/* An address that cannot be used is a warning, since a job must not fail for it. */
const struct driver_part metrics_out_part = {
    .name = "metrics_out", .open = open_part, .close = close_part, .told = told};
