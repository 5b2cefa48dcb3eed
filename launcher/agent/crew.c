/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/crew.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "agent/crew_setup.h"
#include "agent/ending.h"
#include "agent/post.h"
#include "agent/worker.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/status.h"
#include "node/proc_state.h"

/* READY: the answer of a crew to PREPARE. */

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

/* `problem`: why the crew cannot start; NULL: it can. */
static void crew_ready_send(const struct post *post, const struct crew_setup *setup,
                            const struct error *problem)
{
    Hvdrun__Ready message = setup->config->ready;
    if (problem != NULL) {
        message.problem = (char *)problem->text;
        message.rank = (uint32_t)first_rank_of(setup, setup->apps.problem);
        message.status = (uint32_t)(problem->status != 0 ? problem->status : STATUS_LAUNCHER);
    }
    message.master_port = (uint32_t)setup->master_port;
    message.jax_port = (uint32_t)setup->jax_port;
    message.mpi = setup->apps.notes.items;
    message.n_mpi = setup->apps.notes.count;
    message.needs_mpi = setup->apps.needs_mpi;
    message.bindings = setup->binding.pictures.items;
    message.n_bindings = setup->binding.pictures.count;
    if (setup->route.iface != NULL) { /* else it failed before */
        message.address = setup->route.address;
        message.interface = setup->route.iface;
    }
    post_message(post, FRAME_READY, &message.base);
}

struct crew {
    struct crew_config config;
    struct post post; /* under the crew's epoch */
    struct crew_setup setup;
    struct worker_shared shared;
    struct worker *workers; /* as in PREPARE */
    int count, spawned, live, finished;
    struct map by_pid; /* the workers that were started */
    struct oom_watch *oom;
    struct crew_progress *progress; /* since READY; NULL: there is no runtime folder */
    struct loop_timer *slice;
    bool ready;   /* READY did not say no */
    bool started; /* START has come */
    bool stopped; /* the end has begun: nothing more is spawned */
    bool paused;
};

static struct worker *by_seat_find(const struct crew *crew, uint32_t seat)
{
    for (int i = 0; i < crew->count; i++) {
        if (crew->workers[i].seat == seat)
            return &crew->workers[i];
    }
    return NULL;
}

static void worker_changed(void *context, struct worker *worker)
{
    struct crew *crew = context;
    if (worker->state != WORKER_FINISHED)
        return;
    crew->finished++;
    /* The others of a crew that was stopped while it started never will. */
    if (crew->finished == crew->count || (crew->stopped && crew_is_finished(crew)))
        crew->config.finished(crew->config.context);
}

static void ops_signal(void *context, int rank, int signal)
{
    struct crew *crew = context;
    for (int i = 0; i < crew->count; i++) {
        if (rank < 0 || crew->setup.prepare->workers[i]->rank == (uint32_t)rank)
            worker_signal(&crew->workers[i], signal);
    }
}

static pid_t ops_pid(void *context, int index)
{
    const struct crew *crew = context;
    const struct worker *worker = &crew->workers[index];
    return worker->state == WORKER_RUNNING ? worker->pid : 0;
}

static void ops_read(void *context, int index)
{
    const struct crew *crew = context;
    struct worker_stream *output = crew->workers[index].streams[0];
    if (output != NULL)
        stream_take(output);
}

static void make_workers(struct crew *crew, const Hvdrun__Prepare *prepare)
{
    size_t count = prepare->n_workers;
    crew->shared = (struct worker_shared){.loop = crew->config.loop,
                                          .post = &crew->post,
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
    for (size_t i = 0; i < count; i++)
        worker_init(&crew->workers[i], &crew->shared, prepare->workers[i]->seat,
                    prepare->first_seat + prepare->workers[i]->rank);
}

/* What can be done while the driver waits for READY of all nodes. */
static void open_watches(struct crew *crew)
{
    struct link *link = post_link(&crew->post);
    if (link != NULL)
        link_flush(link);
    crew->oom = oom_watch_create();
    uint32_t *seats AUTO_FREE = mem_array((size_t)crew->count, sizeof(*seats));
    for (int i = 0; i < crew->count; i++)
        seats[i] = crew->workers[i].seat;
    crew->progress =
        crew_progress_create(&crew->config, crew_folder(crew), seats, (size_t)crew->count);
}

struct crew *crew_create(const struct crew_config *config, Hvdrun__Prepare *prepare)
{
    static const struct mpi_job_ops mpi_ops = {
        .signal = ops_signal, .pid = ops_pid, .read = ops_read};
    struct crew *crew = mem_alloc(sizeof(*crew));
    struct error err = ERROR_INIT;
    crew->config = *config;
    post_init_part(&crew->post, config->post, config->epoch);
    crew->config.post = &crew->post;
    make_workers(crew, prepare);
    int result = crew_setup_fill(&crew->setup, &crew->config, prepare, &mpi_ops, crew, &err);
    if (result == 0) {
        crew->shared.null_fd = fd_open("/dev/null", O_RDONLY | O_CLOEXEC, 0);
        if (crew->shared.null_fd < 0)
            result = error_errno(&err, errno, "cannot open /dev/null");
    }
    crew->ready = result == 0;
    crew_ready_send(&crew->post, &crew->setup, result < 0 ? &err : NULL);
    if (crew->ready)
        open_watches(crew);
    return crew;
}

static void drop_starting(struct crew *crew)
{
    for (int i = 0; i < crew->spawned; i++)
        worker_drop(&crew->workers[i], crew->config.spawner);
}

void crew_destroy(struct crew *crew)
{
    if (crew == NULL)
        return;
    loop_timer_destroy(crew->slice);
    drop_starting(crew);
    crew_progress_destroy(crew->progress);
    for (int i = 0; i < crew->count; i++)
        worker_destroy(&crew->workers[i]);
    free(crew->workers);
    map_clear(&crew->by_pid, NULL);
    fd_close(&crew->shared.null_fd);
    oom_watch_destroy(crew->oom);
    crew_setup_destroy(&crew->setup);
    free(crew);
}

static void post_started(const struct crew *crew, int from, int to)
{
    uint32_t seats[CREW_START_MAX], pids[CREW_START_MAX];
    uint64_t when[CREW_START_MAX];
    size_t count = 0;
    for (int i = from; i < to; i++) {
        const struct worker *worker = &crew->workers[i];
        if (worker->pid == 0)
            continue;
        seats[count] = worker->seat;
        pids[count] = (uint32_t)worker->pid;
        when[count++] = (uint64_t)worker->started_ns;
    }
    Hvdrun__Started message = HVDRUN__STARTED__INIT;
    message.seats = seats;
    message.pids = pids;
    message.when_ns = when;
    message.n_seats = message.n_pids = message.n_when_ns = count;
    if (count > 0)
        post_message(&crew->post, FRAME_STARTED, &message.base);
}

/* One after the other in the order of their ends: the first failure of a node is known for sure. */
static void worker_has_ended(void *context, int what)
{
    (void)what;
    struct worker *worker = context;
    struct crew *crew = worker->shared->context;
    reaper_collect_one(crew->config.reaper, worker->pid);
}

/* Its process runs: the crew knows it by its pid from now on. */
static void add_live(struct crew *crew, struct worker *worker)
{
    crew->live++;
    map_put(&crew->by_pid, map_number((uint64_t)worker->pid), worker);
    worker_watch_exit(worker, worker_has_ended, worker);
    worker_end_started(worker->end, worker->pid);
    worker_signal_pending(worker);
    if (crew->paused)
        worker_signal(worker, SIGSTOP);
}

/* The spawner had it. */
static void worker_has_started(void *context, pid_t pid, const struct error *err)
{
    struct worker *worker = context;
    struct crew *crew = worker->shared->context;
    int index = (int)(worker - crew->workers);
    if (worker_spawned(worker, pid, err) < 0)
        return;
    add_live(crew, worker);
    if (crew->setup.mpi != NULL)
        mpi_world_spawned(crew->setup.mpi, index, pid);
    post_started(crew, index, index + 1);
}

static void spawn_slice(void *context)
{
    struct crew *crew = context;
    if (crew->stopped)
        return;
    int from = crew->spawned, left = crew->count - from;
    int to = from + (left < CREW_START_MAX ? left : CREW_START_MAX);
    crew->spawned += crew_start_workers(&crew->setup, crew->progress, crew->workers, from, to,
                                        worker_has_started);
    for (int i = from; i < crew->spawned; i++) {
        if (crew->workers[i].state == WORKER_RUNNING)
            add_live(crew, &crew->workers[i]);
    }
    post_started(crew, from, crew->spawned);
    if (crew->spawned < crew->count)
        loop_timer_set(crew->slice, 0);
}

void crew_start(struct crew *crew, const Hvdrun__Start *start)
{
    if (crew->started || !crew->ready || crew->stopped)
        return;
    crew->started = true;
    crew_setup_env(&crew->setup, start);
    crew->slice = loop_timer_create(crew->config.loop, spawn_slice, crew);
    spawn_slice(crew);
}

static struct worker *running_worker(const struct crew *crew, pid_t pid)
{
    struct worker *worker = map_get(&crew->by_pid, map_number((uint64_t)pid));
    return worker != NULL && worker->state == WORKER_RUNNING ? worker : NULL;
}

void crew_note_ends(struct crew *crew, int64_t when_ns)
{
    for (int i = 0; i < crew->spawned; i++) {
        struct worker *worker = &crew->workers[i];
        if (worker->state == WORKER_RUNNING && worker->ends_ns == 0 && proc_state_ends(worker->pid))
            worker->ends_ns = when_ns;
    }
}

/* What hvdrun has ended is no failure, and its exit with 0 is no success. */
static enum crew_end end_of(const struct crew *crew, const struct worker *worker)
{
    if (crew->stopped || worker->end != NULL)
        return CREW_END_ASKED;
    return worker->bad ? CREW_END_FAILURE : CREW_END_SUCCESS;
}

enum crew_end crew_exited(struct crew *crew, const struct reaper_exit *exit, bool failed)
{
    struct worker *worker = running_worker(crew, exit->pid);
    if (worker == NULL)
        return CREW_END_NONE;
    int index = (int)(worker - crew->workers);
    int code = WIFSIGNALED(exit->wait_status) ? 0 : WEXITSTATUS(exit->wait_status);
    int signal = WIFSIGNALED(exit->wait_status) ? WTERMSIG(exit->wait_status) : 0;
    bool oom = signal == SIGKILL && !crew->stopped &&
               oom_watch_verdict(crew->oom, exit->pid) >= OOM_LIKELY;
    crew->live--;
    crew_progress_ended(crew->progress, worker->seat);
    if (crew->setup.mpi != NULL)
        mpi_world_collect(crew->setup.mpi, index);
    bool ordered = failed && exit->wait_status != 0; /* failures keep their order */
    worker_exited(worker, exit, oom, ordered);
    if (crew->setup.mpi != NULL)
        mpi_world_exited(crew->setup.mpi, index, code, signal);
    return end_of(crew, worker);
}

void crew_stop(struct crew *crew)
{
    if (!crew->stopped)
        crew_note_ends(crew, clock_mono_ns()); /* they do not end because of us */
    crew->stopped = true;
    drop_starting(crew);
    for (int i = 0; i < crew->spawned; i++)
        crew->workers[i].held = false; /* one that is stopped could not obey */
}

void crew_signal(struct crew *crew, int signal)
{
    for (int i = 0; i < crew->spawned; i++)
        worker_signal(&crew->workers[i], signal);
}

void crew_signal_seat(struct crew *crew, uint32_t seat, int signal)
{
    struct worker *worker = by_seat_find(crew, seat);
    if (worker != NULL)
        worker_signal(worker, signal);
}

bool crew_release(struct crew *crew, int64_t seat, bool continues)
{
    bool held = false;
    for (int i = 0; i < crew->spawned; i++) {
        struct worker *worker = &crew->workers[i];
        if (!worker->held || (seat >= 0 && seat != (int64_t)worker->seat))
            continue;
        held = true;
        worker->held = false;
        if (continues && !crew->paused)
            worker_signal(worker, SIGCONT); /* a tracer would leave it stopped without that */
    }
    return held;
}

void crew_resize(struct crew *crew, int rows, int columns)
{
    for (int i = 0; i < crew->count; i++)
        worker_resize(&crew->workers[i], rows, columns);
}

void crew_input(struct crew *crew, const struct frame_data *data, const uint8_t *bytes,
                size_t length)
{
    const struct worker *worker = by_seat_find(crew, data->seat);
    if (worker != NULL && worker->input != NULL)
        input_bytes(worker->input, bytes, length);
}

void crew_cut(struct crew *crew)
{
    for (int i = 0; i < crew->count; i++)
        worker_cut(&crew->workers[i]);
}

void crew_end_worker(struct crew *crew, uint32_t seat, int signal, int64_t grace_ms)
{
    struct worker *worker = by_seat_find(crew, seat);
    if (worker != NULL && !worker_end_early(worker, crew->config.spawner, signal))
        worker_begin_end(worker, crew->paused, signal, grace_ms);
}

void crew_pause(struct crew *crew, bool paused)
{
    crew->paused = paused;
    for (int i = 0; i < crew->count; i++)
        worker_end_pause(crew->workers[i].end, paused);
}

const char *crew_mpi_frame(struct crew *crew, uint8_t type, const void *message)
{
    return crew->setup.mpi != NULL ? mpi_relay_frame(crew->setup.mpi, type, message) : NULL;
}

void crew_states(const struct crew *crew, bool finished, const struct descendants_table *processes,
                 struct crew_states *states)
{
    size_t count = states->texts.count;
    states->seats =
        mem_resize_array(states->seats, count + (size_t)crew->count + 1, sizeof(*states->seats));
    states->pids =
        mem_resize_array(states->pids, count + (size_t)crew->count + 1, sizeof(*states->pids));
    for (int i = 0; i < crew->count; i++) {
        const struct worker *worker = &crew->workers[i];
        if (worker->state == WORKER_FINISHED && !finished)
            continue;
        states->seats[states->texts.count] = worker->seat;
        states->pids[states->texts.count] = worker->state == WORKER_RUNNING ? worker->pid : 0;
        strv_add_take(&states->texts, worker_state_text(worker, processes));
    }
}

void crew_walk_live(const struct crew *crew, void (*each)(void *context, uint32_t seat, pid_t pid),
                    void *context)
{
    for (int i = 0; i < crew->count; i++) {
        if (crew->workers[i].state == WORKER_RUNNING)
            each(context, crew->workers[i].seat, crew->workers[i].pid);
    }
}

uint32_t crew_epoch(const struct crew *crew)
{
    return crew->config.epoch;
}

const char *crew_folder(const struct crew *crew)
{
    const struct runtime_dir *dir = crew->setup.runtime_dir;
    return dir == NULL ? NULL : runtime_dir_path(dir);
}

void crew_leave_folders(struct crew *crew)
{
    crew_setup_leave_folders(&crew->setup);
}

int crew_live(const struct crew *crew)
{
    return crew->live;
}

bool crew_is_started(const struct crew *crew)
{
    return crew->started;
}

bool crew_is_elastic(const struct crew *crew)
{
    return crew->setup.prepare->elastic;
}

/* One that a spawner had at the end is PLANNED again. */
static bool is_open(const struct worker *worker)
{
    return worker->state != WORKER_FINISHED && worker->state != WORKER_PLANNED;
}

bool crew_is_finished(const struct crew *crew)
{
    bool open = false;
    for (int i = 0; i < crew->spawned && !open; i++)
        open = is_open(&crew->workers[i]);
    return !open;
}

bool crew_is_over(const struct crew *crew)
{
    bool over = crew->started && (crew->spawned == crew->count || crew->stopped);
    for (int i = 0; i < crew->spawned && over; i++)
        over = !is_open(&crew->workers[i]) && worker_end_is_over(crew->workers[i].end);
    return over;
}

bool crew_has_seat(const struct crew *crew, uint32_t seat)
{
    return by_seat_find(crew, seat) != NULL;
}

bool crew_seat_of(const struct crew *crew, pid_t session, uint32_t *seat)
{
    const struct worker *worker = running_worker(crew, session);
    if (worker != NULL)
        *seat = worker->seat;
    return worker != NULL;
}
