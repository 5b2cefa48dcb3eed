/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/crew_config.h"
#include "agent/crew_setup.h"
#include "agent/worker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "io/threads.h"

static bool is_among(uint32_t seat, const uint32_t *seats, size_t count)
{
    while (count > 0 && seats[count - 1] != seat)
        count--;
    return count > 0;
}

static enum worker_stdin stdin_of(const Hvdrun__Prepare *prepare, uint32_t seat)
{
    if (prepare->pty_seat >= 0 && (uint32_t)prepare->pty_seat == seat)
        return WORKER_STDIN_TERMINAL;
    return is_among(seat, prepare->stdin_seats, prepare->n_stdin_seats) ? WORKER_STDIN_PIPE
                                                                        : WORKER_STDIN_NULL;
}

static enum worker_stdout stdout_of(const struct crew_setup *setup, const struct crew_app *app)
{
    if (setup->prepare->stdout_terminals)
        return WORKER_STDOUT_TERMINAL;
    return setup->prepare->mpi_terminals && app->links_mpi ? WORKER_STDOUT_EITHER
                                                           : WORKER_STDOUT_PIPE;
}

static bool is_stopped(const Hvdrun__Prepare *prepare, uint32_t seat)
{
    return prepare->stop_all || is_among(seat, prepare->stopped_seats, prepare->n_stopped_seats);
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
                              .traceable = true,
                              .stop_at_start = is_stopped(setup->prepare, message->seat),
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

/* Starts that the threads have at once, so that none of them waits for work. */
#define UNDER_WAY 24
/* A turn of the loop begins no start after so long: heartbeats and output wait for its end. */
#define TURN_MS 20

/* A worker between its plan and its process. */
struct start {
    struct spawner_task task;
    struct worker_spawn spawn;
    int index;                /* in PREPARE */
    struct strv extra, hints; /* of its environment */
    struct crew_progress_places places;
    struct worker_vars *vars; /* it borrows from these */
    bool wanted;              /* a process */
};

static void make_vars(struct start *start, const struct crew_setup *setup,
                      const struct crew_progress *progress)
{
    const Hvdrun__Worker *message = setup->prepare->workers[start->index];
    const struct crew_app *app = &setup->apps.items[message->app];
    crew_binding_env(&setup->binding, setup->config->facts->cpu_quota, setup->cpu_ranks, message,
                     &start->hints);
    crew_gpus_env(setup->binding.gpus, message, &start->extra, &start->hints);
    struct worker *worker = start->spawn.worker;
    worker->output = stdout_of(setup, app);
    worker->no_terminal = worker->output == WORKER_STDOUT_EITHER ? setup->no_terminal : 0;
    if (worker->output != WORKER_STDOUT_PIPE && worker->no_terminal == 0) {
        strv_add(&start->hints, "TERM=dumb");
        strv_add(&start->hints, "PAGER=cat"); /* others ask /dev/tty for keys: there is none */
        strv_add(&start->hints, "GIT_PAGER=cat");
    }
    start->places = crew_progress_places(progress, worker->seat);
    struct worker_env_rank rank = {.rank = (int)message->rank,
                                   .local_rank = (int)message->local_rank,
                                   .slot = (int)message->slot,
                                   .cross_rank = (int)message->cross_rank,
                                   .cross_size = (int)message->cross_size,
                                   .app_env = &app->env,
                                   .mpi = setup->apps.kinds[message->app],
                                   .extra = strv_items(&start->extra),
                                   .hints = strv_items(&start->hints),
                                   .command = setup->prepare->apps[message->app]->argv[0],
                                   .arguments = app->arguments,
                                   .wdir = app->wdir,
                                   .progress_file = start->places.file,
                                   .status_url = start->places.url,
                                   .status_token = start->places.token};
    start->vars = worker_env_rank(setup->env, &rank);
}

/* False: nothing is to be spawned. The spawner has it, or `start->spawn.err` says why not. */
static bool begin(struct start *start, struct crew_setup *setup,
                  const struct crew_progress *progress,
                  void (*started)(void *context, pid_t pid, const struct error *err))
{
    struct worker *worker = start->spawn.worker;
    struct error err = ERROR_INIT;
    int keep_fd = -1;
    if (setup->mpi != NULL && mpi_world_worker(setup->mpi, start->index, &start->extra,
                                               &start->hints, &keep_fd, &err) < 0) {
        start->spawn.err = mem_dup(&err, sizeof(err));
        return false;
    }
    make_vars(start, setup, progress);
    start->spawn.spec = spec_of(setup, start->index, start->vars, keep_fd);
    start->spawn.stdin_kind = stdin_of(setup->prepare, worker->seat);
    worker->error_file = crew_setup_error_file(setup, setup->prepare->workers[start->index]->rank);
    if (!worker_offer(worker, &start->spawn.spec, start->spawn.stdin_kind, setup->config->spawner,
                      started))
        return true;
    fd_close(&keep_fd);
    return false;
}

static void run(struct spawner_task *task)
{
    worker_spawn_run(&((struct start *)task)->spawn);
}

static void clear(struct start *start)
{
    worker_vars_destroy(start->vars);
    strv_destroy(&start->extra);
    strv_destroy(&start->hints);
    free(start->places.file);
    free(start->places.url);
}

/* Takes what came of it, after waiting for it: in the order of the ranks, so that the driver hears
 * of their failures in this order. */
static void finish(struct start *start, struct crew_setup *setup)
{
    struct worker *worker = start->spawn.worker;
    if (start->wanted) {
        if (setup->config->spawners != NULL)
            spawners_wait(setup->config->spawners, &start->task);
        worker_spawn_end(&start->spawn);
        if (setup->mpi != NULL)
            mpi_world_spawned(setup->mpi, start->index, worker->pid);
    } else if (start->spawn.err != NULL) {
        worker_fail(worker, start->spawn.err);
        free(start->spawn.err);
    }
    clear(start);
    setup->pipes += worker->no_terminal != 0;
    if (worker->no_terminal != 0) /* the next ones need not try */
        setup->no_terminal = worker->no_terminal;
    if (setup->pipes > 0 && (size_t)start->index + 1 == setup->prepare->n_workers)
        log_info(&setup->config->post->log, "%d of %zu ranks got no terminal, but a pipe: %s",
                 setup->pipes, setup->prepare->n_workers,
                 setup->no_terminal == ENOSPC ? "too few terminals are free"
                                              : strerrordesc_np(setup->no_terminal));
}

/* With threads, some starts are always under way while this one prepares others. Without, each gets
 * its process at once: descriptors that wait for a process make every other start slower. */
int crew_start_workers(struct crew_setup *setup, const struct crew_progress *progress,
                       struct worker *workers, int from, int to,
                       void (*started)(void *context, pid_t pid, const struct error *err))
{
    struct spawners *spawners = setup->config->spawners;
    int count = to - from, begun = 0, finished = 0, under_way = spawners == NULL ? 0 : UNDER_WAY;
    struct start *starts AUTO_FREE = mem_array((size_t)count, sizeof(*starts));
    int64_t end_ms = clock_mono_ms() + TURN_MS;
    for (; begun < count && (begun == 0 || clock_mono_ms() < end_ms); begun++) {
        struct start *start = &starts[begun];
        start->task.run = run;
        start->spawn.worker = &workers[from + begun];
        start->index = from + begun;
        start->wanted = begin(start, setup, progress, started);
        if (start->wanted && spawners != NULL)
            spawners_add(spawners, &start->task);
        else if (start->wanted)
            run(&start->task);
        if (begun - finished >= under_way)
            finish(&starts[finished++], setup);
    }
    while (finished < begun)
        finish(&starts[finished++], setup);
    return begun;
}
