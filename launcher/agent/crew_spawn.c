/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/crew_spawn.h"

#include <stdlib.h>

#include "base/mem.h"

static enum worker_stdin stdin_of(const Hvdrun__Prepare *prepare, uint32_t seat)
{
    if (prepare->pty_seat >= 0 && (uint32_t)prepare->pty_seat == seat)
        return WORKER_STDIN_TERMINAL;
    for (size_t i = 0; i < prepare->n_stdin_seats; i++) {
        if (prepare->stdin_seats[i] == seat)
            return WORKER_STDIN_PIPE;
    }
    return WORKER_STDIN_NULL;
}

static struct child_spec spec_of(const struct crew_setup *setup, int index,
                                 const struct worker_vars *vars, int keep_fd)
{
    const Hvdrun__Worker *message = setup->prepare->workers[index];
    const struct crew_app *app = &setup->apps.items[message->app];
    struct child_spec spec = {.path = app->path,
                              .argv = strv_items(&app->argv),
                              .envp = worker_vars_items(vars),
                              .wdir = app->wdir,
                              .keep_fd = keep_fd,
                              .die_with_parent = true,
                              .mask = setup->config->mask,
                              .limits = setup->limits,
                              .limit_count = setup->limit_count,
                              .script_shell = "/bin/sh"};
    if (setup->binding.cpus != NULL) {
        spec.cpus = (const cpu_set_t *)setup->binding.cpus->ranks[message->slot].words;
        spec.cpus_size = setup->binding.cpus->ranks[message->slot].bytes;
    }
    return spec;
}

int crew_spawn(struct crew_setup *setup, const struct crew_progress *progress, int index,
               struct worker *worker)
{
    const Hvdrun__Worker *message = setup->prepare->workers[index];
    const struct crew_app *app = &setup->apps.items[message->app];
    AUTO_STRV struct strv extra = STRV_INIT, hints = STRV_INIT;
    struct error err = ERROR_INIT;
    int keep_fd = -1;
    if (setup->mpi != NULL &&
        mpi_host_worker(setup->mpi, index, &extra, &hints, &keep_fd, &err) < 0) {
        worker_fail(worker, &err);
        return -1;
    }
    crew_binding_env(&setup->binding, setup->config->facts->cpu_quota, setup->cpu_ranks, message,
                     &hints);
    crew_gpus_env(setup->binding.gpus, message, &extra, &hints);
    struct crew_progress_places places = crew_progress_places(progress, worker->seat);
    struct worker_env_rank rank = {.rank = (int)message->rank,
                                   .local_rank = (int)message->local_rank,
                                   .slot = (int)message->slot,
                                   .cross_rank = (int)message->cross_rank,
                                   .cross_size = (int)message->cross_size,
                                   .app_env = &app->env,
                                   .mpi = setup->apps.kinds[message->app],
                                   .extra = strv_items(&extra),
                                   .hints = strv_items(&hints),
                                   .command = setup->prepare->apps[message->app]->argv[0],
                                   .arguments = app->arguments,
                                   .wdir = app->wdir,
                                   .progress_file = places.file,
                                   .status_url = places.url,
                                   .status_token = places.token};
    struct worker_vars *vars = worker_env_rank(setup->env, &rank);
    struct child_spec spec = spec_of(setup, index, vars, keep_fd);
    worker->error_file = crew_setup_error_file(setup, worker->rank);
    int result = worker_spawn(worker, &spec, stdin_of(setup->prepare, worker->seat));
    worker_vars_destroy(vars);
    free(places.file);
    free(places.url);
    if (setup->mpi != NULL)
        mpi_host_spawned(setup->mpi, index, worker->pid, keep_fd);
    return result;
}
