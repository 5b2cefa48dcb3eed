/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/serve/metrics_out.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "driver/serve/metrics_server.h"
#include "driver/serve/metrics_target.h"
#include "driver/usage/job_history.h"
#include "driver/usage/metrics_file.h"

struct metrics_out {
    struct metrics_server *server;
    struct metrics_file *file;
    struct metrics_target *target;
    char *problem; /* why there is no server; NULL: there is one, or none is wanted */
};

static int open_server(struct job *job, struct error *err)
{
    struct listen_address address;
    struct error problem = ERROR_INIT;
    if (listen_address_parse(job->settings->metrics, &address, err) < 0)
        return error_wrap(err, "%s", settings_place(job->settings, OPT_metrics));
    job->metrics->server = metrics_server_create(job, &address, &problem);
    if (job->metrics->server == NULL)
        log_warning(&job->log, "no metrics: %s%s", problem.text,
                    problem.errnum == EADDRINUSE ? "; --metrics 0 takes a free port" : "");
    if (job->metrics->server == NULL)
        job->metrics->problem = mem_strdup(problem.text);
    else if (job->settings->metrics_targets != NULL)
        job->metrics->target =
            metrics_target_create(job, job->settings->metrics_targets, metrics_out_url(job));
    return 0;
}

int metrics_out_open(struct job *job, struct error *err)
{
    const struct settings *settings = job->settings;
    if (settings->metrics != NULL || settings->page_file != NULL)
        job->history = job_history_create(job);
    if (settings->metrics == NULL && settings->metrics_file == NULL)
        return 0;
    job->metrics = mem_alloc(sizeof(*job->metrics));
    *job->metrics = (struct metrics_out){.server = NULL};
    if (settings->metrics_file != NULL)
        job->metrics->file = metrics_file_create(job, settings->metrics_file);
    return settings->metrics == NULL ? 0 : open_server(job, err);
}

void metrics_out_end(struct job *job)
{
    if (job->metrics != NULL && job->metrics->server != NULL)
        metrics_server_finish(job->metrics->server);
}

void metrics_out_close(struct job *job)
{
    job_history_destroy(job->history);
    job->history = NULL;
    if (job->metrics == NULL)
        return;
    metrics_server_destroy(job->metrics->server);
    metrics_file_destroy(job->metrics->file);
    metrics_target_destroy(job->metrics->target);
    free(job->metrics->problem);
    free(job->metrics);
    job->metrics = NULL;
}

const char *metrics_out_url(const struct job *job)
{
    bool served = job->metrics != NULL && job->metrics->server != NULL;
    return served ? metrics_server_url(job->metrics->server) : NULL;
}

const char *metrics_out_page(const struct job *job)
{
    bool served = job->metrics != NULL && job->metrics->server != NULL;
    return served ? metrics_server_page(job->metrics->server) : NULL;
}

const char *metrics_out_problem(const struct job *job)
{
    return job->metrics != NULL ? job->metrics->problem : NULL;
}
