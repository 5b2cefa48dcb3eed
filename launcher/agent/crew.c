/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/crew.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "agent/crew_setup.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/status.h"
#include "node/proc_state.h"

#define SPAWN_SLICE 32 /* workers in one turn of the loop */
#define STATE_PROCESSES 16
#define STATE_TEXT_MAX ((size_t)16 << 10)

struct crew {
    struct crew_config config;
    struct crew_setup setup;
    struct worker_shared shared;
    struct worker *workers; /* by local rank */
    int count, spawned, live, finished;
    int first_rank;
    int *by_pid; /* open hash: local rank + 1, 0 free */
    size_t by_pid_size;
    struct oom_watch *oom;
    struct loop_timer *slice;
    bool stopped; /* the end has begun: nothing more is spawned */
};

static void by_pid_add(struct crew *crew, int local_rank)
{
    size_t at = (size_t)crew->workers[local_rank].pid & (crew->by_pid_size - 1);
    while (crew->by_pid[at] != 0)
        at = (at + 1) & (crew->by_pid_size - 1);
    crew->by_pid[at] = local_rank + 1;
}

static struct worker *by_pid_find(const struct crew *crew, pid_t pid)
{
    size_t at = (size_t)pid & (crew->by_pid_size - 1);
    for (; crew->by_pid[at] != 0; at = (at + 1) & (crew->by_pid_size - 1)) {
        struct worker *worker = &crew->workers[crew->by_pid[at] - 1];
        if (worker->pid == pid && worker->state == WORKER_RUNNING)
            return worker;
    }
    return NULL;
}

static void worker_changed(void *context, struct worker *worker)
{
    struct crew *crew = context;
    if (worker->state != WORKER_FINISHED)
        return;
    crew->finished++;
    if (crew->finished == crew->count)
        crew->config.finished(crew->config.context);
}

static void ops_signal(void *context, int rank, int signal)
{
    struct crew *crew = context;
    for (int i = 0; i < crew->count; i++) {
        if (rank < 0 || crew->workers[i].rank == (uint32_t)rank)
            worker_signal(&crew->workers[i], signal);
    }
}

static pid_t ops_pid(void *context, int local_rank)
{
    const struct crew *crew = context;
    const struct worker *worker = &crew->workers[local_rank];
    return worker->state == WORKER_RUNNING ? worker->pid : 0;
}

/* The lowest rank of this node that runs the app; app -1: of any. */
static int first_rank_of(const struct crew_setup *setup, int app)
{
    const Hvdrun__Prepare *prepare = setup->prepare;
    for (size_t i = 0; i < prepare->n_workers; i++) {
        if (app < 0 || prepare->workers[i]->app == (uint32_t)app)
            return (int)prepare->workers[i]->rank;
    }
    return 0;
}

static void send_ready(const struct crew *crew, const struct error *problem)
{
    const struct crew_setup *setup = &crew->setup;
    Hvdrun__Ready message = HVDRUN__READY__INIT;
    if (problem != NULL) {
        message.problem = (char *)problem->text;
        message.rank = (uint32_t)first_rank_of(setup, setup->problem_app);
        message.status = (uint32_t)(problem->status != 0 ? problem->status : STATUS_LAUNCHER);
    }
    message.master_port = (uint32_t)setup->master_port;
    message.jax_port = (uint32_t)setup->jax_port;
    message.mpi = setup->notes.items;
    message.n_mpi = setup->notes.count;
    message.bindings = setup->pictures.items;
    message.n_bindings = setup->pictures.count;
    if (setup->route.iface != NULL) { /* else it failed before */
        message.address = setup->route.address;
        message.interface = setup->route.iface;
    }
    post_message(crew->config.post, FRAME_READY, &message.base);
}

static void make_workers(struct crew *crew, const Hvdrun__Prepare *prepare)
{
    size_t count = prepare->n_workers;
    crew->shared = (struct worker_shared){.loop = crew->config.loop,
                                          .post = crew->config.post,
                                          .pool = crew->config.pool,
                                          .null_fd = -1,
                                          .drain_ms = crew->config.drain_ms,
                                          .merge_stderr = prepare->merge_stderr,
                                          .rows = (int)prepare->terminal_rows,
                                          .columns = (int)prepare->terminal_columns,
                                          .changed = worker_changed,
                                          .context = crew};
    crew->workers = mem_array(count, sizeof(*crew->workers));
    crew->count = (int)count;
    crew->first_rank = count > 0 ? (int)prepare->workers[0]->rank : 0;
    for (size_t i = 0; i < count; i++)
        worker_init(&crew->workers[i], &crew->shared, prepare->workers[i]->rank);
    crew->by_pid_size = 16;
    while (crew->by_pid_size < 2 * count)
        crew->by_pid_size *= 2;
    crew->by_pid = mem_array(crew->by_pid_size, sizeof(*crew->by_pid));
}

struct crew *crew_create(const struct crew_config *config, Hvdrun__Prepare *prepare)
{
    static const struct mpi_host_ops mpi_ops = {.signal = ops_signal, .pid = ops_pid};
    struct crew *crew = mem_alloc(sizeof(*crew));
    struct error err = ERROR_INIT;
    crew->config = *config;
    make_workers(crew, prepare);
    int result = crew_setup_fill(&crew->setup, &crew->config, prepare, &mpi_ops, crew, &err);
    if (result == 0) {
        crew->shared.null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (crew->shared.null_fd < 0)
            result = error_errno(&err, errno, "cannot open /dev/null");
    }
    send_ready(crew, result < 0 ? &err : NULL);
    return crew;
}

void crew_destroy(struct crew *crew)
{
    if (crew == NULL)
        return;
    loop_timer_destroy(crew->slice);
    for (int i = 0; i < crew->count; i++)
        worker_destroy(&crew->workers[i]);
    free(crew->workers);
    free(crew->by_pid);
    fd_close(&crew->shared.null_fd);
    oom_watch_destroy(crew->oom);
    crew_setup_destroy(&crew->setup);
    free(crew);
}

static enum worker_stdin stdin_of(const struct crew *crew, uint32_t rank)
{
    const Hvdrun__Prepare *prepare = crew->setup.prepare;
    if (prepare->pty_rank >= 0 && (uint32_t)prepare->pty_rank == rank)
        return WORKER_STDIN_TERMINAL;
    for (size_t i = 0; i < prepare->n_stdin_ranks; i++) {
        if (prepare->stdin_ranks[i] == rank)
            return WORKER_STDIN_PIPE;
    }
    return WORKER_STDIN_NULL;
}

/* Fills what differs between workers and starts one. */
static int spawn_one(struct crew *crew, int local_rank)
{
    struct crew_setup *setup = &crew->setup;
    const Hvdrun__Worker *message = setup->prepare->workers[local_rank];
    const struct crew_app *app = &setup->apps[message->app];
    struct worker *worker = &crew->workers[local_rank];
    AUTO_STRV struct strv extra = STRV_INIT;
    struct error err = ERROR_INIT;
    int keep_fd = -1;
    if (mpi_host_worker(setup->mpi, local_rank, &extra, &keep_fd, &err) < 0) {
        worker_fail(worker, &err);
        return -1;
    }
    struct worker_env_rank rank = {.rank = (int)message->rank,
                                   .local_rank = local_rank,
                                   .cross_rank = (int)message->cross_rank,
                                   .cross_size = (int)message->cross_size,
                                   .app_env = &app->env,
                                   .mpi = setup->kinds[message->app],
                                   .extra = strv_items(&extra),
                                   .command = setup->prepare->apps[message->app]->argv[0],
                                   .arguments = app->arguments,
                                   .wdir = app->wdir};
    struct worker_vars *vars = worker_env_rank(setup->env, &rank);
    struct child_spec spec = {.path = app->path,
                              .argv = strv_items(&app->argv),
                              .envp = worker_vars_items(vars),
                              .wdir = app->wdir,
                              .keep_fd = keep_fd,
                              .die_with_parent = true,
                              .mask = crew->config.mask,
                              .limits = setup->limits,
                              .limit_count = setup->limit_count,
                              .script_shell = "/bin/sh"};
    if (setup->binding != NULL) {
        spec.cpus = (const cpu_set_t *)setup->binding->ranks[local_rank].words;
        spec.cpus_size = setup->binding->ranks[local_rank].bytes;
    }
    worker->error_file = crew_setup_error_file(setup, worker->rank);
    int result = worker_spawn(worker, &spec, stdin_of(crew, message->rank));
    worker_vars_destroy(vars);
    mpi_host_spawned(setup->mpi, local_rank, worker->pid, keep_fd);
    return result;
}

static void post_started(const struct crew *crew, int from, int to)
{
    uint32_t ranks[SPAWN_SLICE], pids[SPAWN_SLICE];
    uint64_t when[SPAWN_SLICE];
    size_t count = 0;
    for (int i = from; i < to; i++) {
        const struct worker *worker = &crew->workers[i];
        if (worker->pid == 0)
            continue;
        ranks[count] = worker->rank;
        pids[count] = (uint32_t)worker->pid;
        when[count++] = (uint64_t)worker->started_ns;
    }
    Hvdrun__Started message = HVDRUN__STARTED__INIT;
    message.ranks = ranks;
    message.pids = pids;
    message.when_ns = when;
    message.n_ranks = message.n_pids = message.n_when_ns = count;
    if (count > 0)
        post_message(crew->config.post, FRAME_STARTED, &message.base);
}

/* One after the other in the order of their ends: the first failure of a node is known for sure. */
static void worker_has_ended(void *context, int what)
{
    (void)what;
    struct worker *worker = context;
    struct crew *crew = worker->shared->context;
    reaper_collect_one(crew->config.reaper, worker->pid);
}

static void spawn_slice(void *context)
{
    struct crew *crew = context;
    int from = crew->spawned;
    while (crew->spawned < crew->count && crew->spawned < from + SPAWN_SLICE && !crew->stopped) {
        if (spawn_one(crew, crew->spawned) == 0) {
            crew->live++;
            by_pid_add(crew, crew->spawned);
            struct worker *worker = &crew->workers[crew->spawned];
            worker_watch_exit(worker, worker_has_ended, worker);
        }
        crew->spawned++;
    }
    post_started(crew, from, crew->spawned);
    if (crew->spawned < crew->count && !crew->stopped)
        loop_timer_set(crew->slice, 0);
}

void crew_start(struct crew *crew, const Hvdrun__Start *start)
{
    if (crew->slice != NULL || crew->setup.mpi == NULL)
        return; /* a second START, or one after a READY that said no */
    crew_setup_env(&crew->setup, start);
    crew->oom = oom_watch_create();
    crew->slice = loop_timer_create(crew->config.loop, spawn_slice, crew);
    spawn_slice(crew);
}

bool crew_exited(struct crew *crew, const struct reaper_exit *exit)
{
    struct worker *worker = by_pid_find(crew, exit->pid);
    if (worker == NULL)
        return false;
    int local_rank = (int)worker->rank - crew->first_rank;
    int signal = WIFSIGNALED(exit->wait_status) ? WTERMSIG(exit->wait_status) : 0;
    bool oom = signal == SIGKILL && !crew->stopped &&
               oom_watch_verdict(crew->oom, exit->pid) >= OOM_LIKELY;
    crew->live--;
    mpi_host_collect(crew->setup.mpi, local_rank);
    worker_exited(worker, exit, oom);
    mpi_host_exited(crew->setup.mpi, local_rank, signal == 0 ? WEXITSTATUS(exit->wait_status) : 0,
                    signal);
    return true;
}

void crew_stop(struct crew *crew)
{
    crew->stopped = true;
}

void crew_signal(struct crew *crew, int signal)
{
    for (int i = 0; i < crew->spawned; i++)
        worker_signal(&crew->workers[i], signal);
}

void crew_resize(struct crew *crew, int rows, int columns)
{
    for (int i = 0; i < crew->count; i++)
        worker_resize(&crew->workers[i], rows, columns);
}

void crew_input(struct crew *crew, const struct frame_data *data, const uint8_t *bytes,
                size_t length)
{
    int64_t local_rank = (int64_t)data->rank - crew->first_rank;
    if (local_rank >= 0 && local_rank < crew->count && crew->workers[local_rank].input != NULL)
        input_bytes(crew->workers[local_rank].input, bytes, length);
}

void crew_cut(struct crew *crew)
{
    for (int i = 0; i < crew->count; i++)
        worker_cut(&crew->workers[i]);
}

void crew_report_states(struct crew *crew)
{
    Hvdrun__StateReport message = HVDRUN__STATE_REPORT__INIT;
    uint32_t *ranks AUTO_FREE = mem_array((size_t)crew->count, sizeof(*ranks));
    AUTO_STRV struct strv texts = STRV_INIT;
    for (int i = 0; i < crew->count; i++) {
        const struct worker *worker = &crew->workers[i];
        struct buf text = BUF_INIT(STATE_TEXT_MAX);
        if (worker->state == WORKER_RUNNING) {
            proc_state_report(worker->pid, STATE_PROCESSES, &text);
            buf_consume(&text, strspn(buf_text(&text), " "));
            while (text.length > 0 && text.bytes[text.start + text.length - 1] == '\n')
                text.length--;
            text.bytes[text.start + text.length] = '\0';
        } else {
            buf_puts(&text, worker_state_name(worker->state));
        }
        ranks[i] = worker->rank;
        strv_add_take(&texts, buf_take(&text));
    }
    message.ranks = ranks;
    message.texts = texts.items;
    message.n_ranks = message.n_texts = (size_t)crew->count;
    post_message(crew->config.post, FRAME_STATE_REPORT, &message.base);
}

int crew_live(const struct crew *crew)
{
    return crew->live;
}

bool crew_is_finished(const struct crew *crew)
{
    int open = 0;
    for (int i = 0; i < crew->spawned; i++)
        open += crew->workers[i].state != WORKER_FINISHED;
    return open == 0;
}

bool crew_has_group(const struct crew *crew, pid_t group)
{
    return by_pid_find(crew, group) != NULL;
}
