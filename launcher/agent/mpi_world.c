/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/mpi.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "node/descendants.h"
#include "node/mpi_detect.h"
#include "pmi1/request.h"
#include "stacks/printed.h"

#define LOOKS 3
static const int64_t look_at_ms[LOOKS] = {1000, 5000, 20000};

int mpi_world_first(const struct mpi_world *world)
{
    return (int)world->job.prepare->first_seat;
}

/* The number by which the PMIx server knows a worker: that of an MPI rank is its seat. */
static int number_of(const struct mpi_world *world, int index)
{
    return mpi_world_first(world) + (int)world->job.prepare->workers[index]->rank;
}

static enum mpi_kind kind_of(const struct mpi_world *world, int index)
{
    return world->job.kinds[world->job.prepare->workers[index]->app];
}

static int compare(const void *a, const void *b)
{
    int one = *(const int *)a, other = *(const int *)b;
    return (one > other) - (one < other);
}

int mpi_world_index(const struct mpi_world *world, int rank)
{
    const struct rank_places *places = world->job.places;
    const int *ranks = rank_places_of(places, places->here);
    size_t count = (size_t)rank_places_count(places, places->here);
    const int *found = bsearch(&rank, ranks, count, sizeof(rank), compare);
    return found == NULL ? -1 : (int)(found - ranks);
}

/* As the driver knows a rank of this node. */
static uint32_t seat_of(const struct mpi_world *world, int rank)
{
    int index = mpi_world_index(world, rank);
    return index >= 0 ? world->job.prepare->workers[index]->seat : (uint32_t)rank;
}

static void post_abort(const struct mpi_world *world, uint32_t seat, Hvdrun__Abort *message)
{
    message->seat = seat;
    message->when_ns = (uint64_t)clock_mono_ns();
    post_message(world->job.post, FRAME_ABORT, &message->base);
}

void mpi_world_abort(const struct mpi_world *world, int rank, int status, const char *text)
{
    Hvdrun__Abort message = HVDRUN__ABORT__INIT;
    message.status = status;
    message.text = (char *)(text == NULL ? "" : text); /* protobuf-c only reads it */
    post_abort(world, seat_of(world, rank), &message);
}

void mpi_world_refuse_spawn(const struct mpi_world *world, int rank)
{
    Hvdrun__Abort message = HVDRUN__ABORT__INIT;
    message.spawn = true;
    post_abort(world, seat_of(world, rank), &message);
}

/* 0: it is not here, or does not run. */
static pid_t pid_of(const struct mpi_world *world, int index)
{
    return index >= 0 ? world->job.ops->pid(world->job.context, index) : 0;
}

void mpi_world_flush(const struct mpi_world *world, int rank)
{
    int index = mpi_world_index(world, rank);
    pid_t pid = pid_of(world, index), *below AUTO_FREE = NULL;
    size_t count = pid > 0 ? descendants_list(pid, &below) : 0;
    pid_t found = 0;
    for (size_t i = 0; pid > 0 && i <= count; i++) {
        pid_t one = i == 0 ? pid : below[i - 1];
        struct mpi_finding finding;
        mpi_detect_process(one, &finding);
        if (finding.kind != MPI_PMIX || mpi_process_launched_by_other(one, MPI_PMIX, world->nspace))
            continue;
        if (found != 0)
            return; /* which of them waits for the answer is unknown, and others may print */
        found = one;
    }
    if (found == 0)
        return;
    world->job.ops->read(world->job.context, index);
    printed_flush(found);
}

void mpi_world_given(const struct mpi_world *world, int rank, struct buf *out)
{
    pid_t pid = pid_of(world, mpi_world_index(world, rank));
    char *path AUTO_FREE = mem_printf("/proc/%d/environ", (int)pid);
    if (pid == 0 || fd_read_file(path, out, NULL) < 0)
        buf_clear(out);
}

static void pmi1_aborted(void *context, int rank, int code, const char *text)
{
    mpi_world_abort(context, rank, code, text);
}

void mpi_too_large(const struct log *log, size_t length)
{
    log_error(log,
              "the MPI ranks have %zu MiB for other nodes in one step, but the limit is %zu MiB",
              length >> 20, FRAME_MPI_DATA_MAX >> 20);
}

static void pmi1_barrier_in(void *context, const char *bytes, size_t length)
{
    struct mpi_world *world = context;
    if (mpi_relay_barrier(world->job.post, bytes, length) == 0)
        return;
    mpi_too_large(&world->job.post->log, length);
    mpi_world_abort(world, (int)world->job.prepare->workers[0]->rank, 1, "too much data in PMI-1");
}

static void pmi1_spawn(void *context, int rank, const struct pmi1_spawn *request)
{
    const struct mpi_world *world = context;
    if (world->job.prepare->elastic) {
        mpi_world_refuse_spawn(world, rank);
        return;
    }
    _Static_assert(2 * PMI1_SPAWN_BYTES_MAX <= FRAME_MPI_DATA_MAX, "a request fits");
    mpi_relay_spawn_pmi1(world->job.post, rank, mpi_world_first(world) + rank, request);
}

static void pmi1_name(void *context, int rank, enum pmi1_name_request request, const char *service,
                      const char *port)
{
    const struct mpi_world *world = context;
    mpi_relay_name(world->job.post, rank, request, service, port);
}

/* Did this local rank ever speak to the server it was given? */
static bool has_spoken(const struct mpi_world *world, int index)
{
    switch (kind_of(world, index)) {
    case MPI_PMIX:
        return world->pmix != NULL &&
               world->pmix->module->worker_state(world->pmix->inner, number_of(world, index)) !=
                   PMIX_WORKER_SILENT;
    case MPI_PMI1: return pmi1_wire_state(world->pmi1, index) != PMI1_SILENT;
    default: return false;
    }
}

/* Has this local rank left MPI as it should, or never been expected in it? */
static bool has_finalized(const struct mpi_world *world, int index)
{
    switch (kind_of(world, index)) {
    case MPI_PMIX: {
        enum pmix_worker_state state =
            world->pmix->module->worker_state(world->pmix->inner, number_of(world, index));
        return state == PMIX_WORKER_FINALIZED || state == PMIX_WORKER_ABORTED;
    }
    case MPI_PMI1: return pmi1_wire_state(world->pmi1, index) == PMI1_FINALIZED;
    default: return true;
    }
}

/* Looks */

static void warn_of_kind(const struct mpi_world *world, int index, pid_t pid,
                         const struct mpi_finding *finding)
{
    const Hvdrun__Prepare *prepare = world->job.prepare;
    const Hvdrun__Worker *worker = prepare->workers[index];
    bool chosen = strcmp(prepare->apps[worker->app]->mpi, mpi_kind_name(MPI_AUTO)) == 0;
    const char *given = mpi_kind_name(kind_of(world, index));
    const char *needed = mpi_kind_name(finding->kind);
    char *why AUTO_FREE = chosen ? mem_printf("hvdrun chose --mpi=%s for it, since the program %s",
                                              given, world->job.reasons[worker->app])
                                 : mem_printf("was started with --mpi=%s", given);
    log_warning(&world->job.post->log,
                "rank %d uses MPI (process %d %s) but %s, so most likely each of its processes is "
                "a world of its own; start the job with --mpi=%s",
                number_of(world, index), (int)pid, finding->what, why, needed);
}

/* true: a warning was due. */
static bool look_at(struct mpi_world *world, int index, pid_t pid)
{
    struct mpi_finding finding;
    enum mpi_kind given = kind_of(world, index);
    mpi_detect_process(pid, &finding);
    if (finding.kind == MPI_NONE || finding.kind == given ||
        mpi_process_launched_by_other(pid, given, world->nspace == NULL ? "" : world->nspace))
        return false;
    warn_of_kind(world, index, pid, &finding);
    return true;
}

/* A clean exit ends nothing, but the others may wait in a collective call for a rank that is gone.
 */
static bool look_for_waiting(const struct mpi_world *world)
{
    for (size_t i = 0; i < world->job.prepare->n_workers && world->look.early >= 0; i++) {
        if (pid_of(world, (int)i) == 0 || !has_spoken(world, (int)i))
            continue;
        log_warning(&world->job.post->log,
                    "rank %d has exited without MPI_Finalize; rank %d and others that use MPI may "
                    "wait for it forever",
                    number_of(world, world->look.early), number_of(world, (int)i));
        return true;
    }
    return false;
}

static void look_around(void *context)
{
    struct mpi_world *world = context;
    size_t count = world->job.prepare->n_workers;
    bool waits = look_for_waiting(world);
    for (size_t i = 0; i < count && !waits && !world->look.warned; i++) {
        pid_t pid = pid_of(world, (int)i);
        if (pid == 0 || has_spoken(world, (int)i))
            continue;
        world->look.warned = look_at(world, (int)i, pid);
        pid_t *below AUTO_FREE = NULL;
        size_t below_count = world->look.warned ? 0 : descendants_list(pid, &below);
        for (size_t j = 0; j < below_count && !world->look.warned; j++)
            world->look.warned = look_at(world, (int)i, below[j]);
    }
    world->look.looked++;
    bool more = !waits && (!world->look.warned || world->look.early >= 0);
    if (more && world->look.looked < LOOKS)
        loop_timer_set(world->look.timer,
                       look_at_ms[world->look.looked] - look_at_ms[world->look.looked - 1]);
}

void mpi_world_open(struct mpi_world *world)
{
    world->look.early = -1;
    world->look.timer = loop_timer_create(world->loop, look_around, world);
}

void mpi_world_open_pmi1(struct mpi_world *world)
{
    static const struct pmi1_ops ops = {.abort = pmi1_aborted,
                                        .barrier_in = pmi1_barrier_in,
                                        .name = pmi1_name,
                                        .spawn = pmi1_spawn};
    world->pmi1 = pmi1_wire_create(world, &ops);
}

void mpi_world_look(struct mpi_world *world)
{
    loop_timer_set(world->look.timer, look_at_ms[0]);
}

/* This worker exited with 0, but without MPI_Finalize. */
static void left(struct mpi_world *world, int index)
{
    if (world->look.early >= 0)
        return;
    world->look.early = index;
    loop_timer_set(world->look.timer, look_at_ms[0]);
}

void mpi_world_close(struct mpi_world *world)
{
    loop_timer_destroy(world->look.timer);
    pmi1_wire_destroy(world->pmi1);
    if (post_link(world->job.post) != NULL)
        link_drop_pieces(post_link(world->job.post), world->job.post->epoch);
    free(world->nspace);
    free(world);
}

int mpi_world_worker(struct mpi_world *world, int index, struct strv *env, struct strv *hints,
                     int *keep_fd, struct error *err)
{
    enum mpi_kind kind = kind_of(world, index);
    *keep_fd = -1;
    /* Open MPI and MPICH load hwloc, and hwloc all its plugins: a tenth of what a rank's start
     * costs goes into X11, libxml2 and the Unicode tables behind them. A rank has no display, and
     * hwloc reads the XML that it has written without libxml2. */
    if (kind != MPI_NONE)
        strv_env_set(hints, "HWLOC_PLUGINS_BLACKLIST", "hwloc_gl.so,hwloc_xml_libxml.so");
    switch (kind) {
    case MPI_PMIX:
        return world->pmix->module->worker_env(world->pmix->inner, number_of(world, index), env,
                                               hints, err);
    case MPI_PMI1: return pmi1_wire_worker(world->pmi1, index, env, keep_fd, err);
    default: return 0;
    }
}

void mpi_world_spawned(struct mpi_world *world, int index, pid_t pid)
{
    if (kind_of(world, index) == MPI_PMIX && pid > 0)
        world->pmix->module->worker_started(world->pmix->inner, number_of(world, index), pid);
}

void mpi_world_exited(struct mpi_world *world, int index, int code, int signal)
{
    if (code == 0 && signal == 0 && !has_finalized(world, index)) {
        left(world, index);
        if (has_spoken(world, index)) {
            Hvdrun__Abort message = HVDRUN__ABORT__INIT;
            message.left = true;
            post_abort(world, world->job.prepare->workers[index]->seat, &message);
        }
    }
    if (kind_of(world, index) != MPI_PMIX)
        return;
    world->pmix->module->worker_ended(world->pmix->inner, number_of(world, index), code, signal);
    if (world->published)
        mpi_relay_rank_ended(world->job.post, world->nspace,
                             (int)world->job.prepare->workers[index]->rank);
}

void mpi_world_collect(struct mpi_world *world, int index)
{
    if (kind_of(world, index) == MPI_PMIX)
        world->pmix->module->dispatch(world->pmix->inner);
    else if (kind_of(world, index) == MPI_PMI1)
        pmi1_wire_collect(world->pmi1, index);
}
