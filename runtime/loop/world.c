/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/world.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/thread.h"
#include "engine/load.h"
#include "loop/sets.h"

enum { EVENTS = 16 };
#define STOP UINT64_MAX

/* ---- Why the job has failed ------------------------------------------------------------------ */

/* -1: the system does not give a descriptor. Then there is no `stop`, and all else works. */
static int failure_init(struct failure *failure, struct error *err)
{
    atomic_init(&failure->status, HVD_OK);
    pthread_mutex_init(&failure->lock, NULL);
    failure->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return failure->stop >= 0 ? 0 : error_errno(err, errno, "cannot make an eventfd");
}

static void failure_destroy(struct failure *failure)
{
    fd_close(&failure->stop);
    pthread_mutex_destroy(&failure->lock);
}

/* False: there was a failure before, which stays. */
static bool failure_set(struct failure *failure, enum hvd_status status, const char *text)
{
    pthread_mutex_lock(&failure->lock);
    bool first = atomic_load(&failure->status) == HVD_OK;
    if (first) {
        snprintf(failure->text, sizeof failure->text, "%s", text);
        atomic_store(&failure->status, status); /* after the text: see failure_get() */
    }
    pthread_mutex_unlock(&failure->lock);
    if (!first)
        return false;
    eventfd_write(failure->stop, 1);
    return true;
}

/* HVD_OK, or the reason. `err` may be NULL. */
static enum hvd_status failure_get(struct failure *failure, struct error *err)
{
    enum hvd_status status = (enum hvd_status)atomic_load(&failure->status);
    if (status != HVD_OK)
        error_set(err, "%s", failure->text);
    return status;
}

/* ---- The watch ------------------------------------------------------------------------------- */

/*
 * Watches the connections of all process sets for their end, in a thread of its own.
 *
 * A set's own thread cannot do that while it is in an operation of the engine. An engine may notice
 * a lost rank only when its time-out is over. The thread sleeps until a connection ends.
 */
struct watch {
    int epoll, stop;
    void (*gone)(void *context, int32_t set, int rank);
    void *context;
    pthread_t thread;
};

static void *watch_run(void *argument)
{
    const struct watch *watch = argument;
    for (;;) {
        struct epoll_event events[EVENTS];
        int count = epoll_wait(watch->epoll, events, EVENTS, -1);
        for (int i = 0; i < count; i++) {
            uint64_t who = events[i].data.u64;
            if (who == STOP)
                return NULL;
            watch->gone(watch->context, (int32_t)(who >> 32), (int)(uint32_t)who);
        }
    }
}

static void watch_free(struct watch *watch)
{
    fd_close(&watch->epoll);
    fd_close(&watch->stop);
    free(watch);
}

/* `gone` gets what watch_add() was called with, in the watch's thread. NULL: it cannot be made. */
static struct watch *watch_start(void (*gone)(void *context, int32_t set, int rank), void *context,
                                 struct error *err)
{
    struct watch *watch = mem_alloc(sizeof *watch);
    struct epoll_event stop = {.events = EPOLLIN, .data.u64 = STOP};
    *watch = (struct watch){.gone = gone, .context = context};
    watch->epoll = epoll_create1(EPOLL_CLOEXEC);
    watch->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    bool ready = watch->epoll >= 0 && watch->stop >= 0 &&
                 epoll_ctl(watch->epoll, EPOLL_CTL_ADD, watch->stop, &stop) == 0;
    int code = ready ? thread_start(&watch->thread, "hvd-watch", watch_run, watch) : errno;
    if (code == 0)
        return watch;
    error_errno(err, code, "cannot watch the connections of the process sets");
    watch_free(watch);
    return NULL;
}

static void watch_stop(struct watch *watch)
{
    if (watch == NULL)
        return;
    eventfd_write(watch->stop, 1);
    pthread_join(watch->thread, NULL);
    watch_free(watch);
}

/* From any thread. The end of the descriptor is watched until it is closed.
 * Edge-triggered: an end that another thread deals with does not come again and again. */
static void watch_add(struct watch *watch, int fd, int32_t set, int rank)
{
    struct epoll_event end = {.events = EPOLLRDHUP | EPOLLET,
                              .data.u64 = (uint64_t)(uint32_t)set << 32 | (uint32_t)rank};
    int rc = epoll_ctl(watch->epoll, EPOLL_CTL_ADD, fd, &end);
    (void)rc; /* without it, the engine notices later */
}

/* ---- The job --------------------------------------------------------------------------------- */

enum hvd_status world_mpi_members(struct world *world, const void *communicator, int32_t **ranks,
                                  int32_t *count, struct error *err)
{
    const struct engine *engine = world->engine;
    if (engine->mpi_members != NULL)
        return engine->mpi_members(world->engine_world, communicator, ranks, count, err);
    error_set(err,
              "the engine '%s' does not know communicators of MPI: start the program with hvdrun "
              "--controller mpi",
              engine->name);
    return HVD_ERR_UNSUPPORTED;
}

/* ---- What sets tell -------------------------------------------------------------------------- */

static void ring(void *context, struct process_set *set)
{
    (void)context;
    set_ring(set);
}

void world_lost(struct world *world, enum hvd_status status, const char *text)
{
    if (!failure_set(&world->failure, status, text))
        return;
    world->engine->abort(world->engine_world);
    sets_each(&world->sets, ring, NULL);
}

static void left(void *context, struct process_set *set)
{
    set_left(set, *(const int *)context);
}

void world_left(struct world *world, int rank)
{
    sets_each(&world->sets, left, &rank);
}

static void tell_waits(struct process_set *set, loop_wait *take, void *context)
{
    struct stall stalls[CORE_WAITS_MAX];
    int count = set_waits(set, stalls);
    if (count == 0)
        take(context, set->id, NULL);
    for (int i = 0; i < count; i++) {
        take(context, set->id, &stalls[i]);
        stall_destroy(&stalls[i]);
    }
}

/* No lock is held while `take` runs. */
void world_waits(struct world *world, loop_wait *take, void *context)
{
    int32_t count = sets_ids(&world->sets, NULL, 0);
    int32_t *ids AUTO_FREE = mem_array((size_t)count + 1, sizeof *ids);
    int32_t now = sets_ids(&world->sets, ids, count);
    for (int32_t i = 0; i < count && i < now; i++) {
        struct process_set *set AUTO_SET = sets_hold(&world->sets, ids[i]);
        if (set != NULL)
            tell_waits(set, take, context);
    }
}

enum hvd_status world_failure(struct world *world, struct error *err)
{
    return failure_get(&world->failure, err);
}

static void lost(void *context, enum hvd_status status, const char *text)
{
    world_lost(context, status, text);
}

static enum hvd_status failure(void *context, struct error *err)
{
    return world_failure(context, err);
}

static enum hvd_status change(void *context, const struct request *request, struct outcome *outcome,
                              struct error *err)
{
    return set_maker_change(&((const struct world *)context)->maker, request, outcome, err);
}

static void stalled(void *context, int32_t set, const char *text, const struct stall *stall)
{
    const struct world *world = context;
    const struct loop_joints *joints = &world->joints;
    if (joints->stalled == NULL || !joints->stalled(joints->context, set, stall))
        fprintf(stderr, "libhvd: warning: %s\n", text);
}

static void goes_on(void *context, int32_t set)
{
    const struct loop_joints *joints = &((const struct world *)context)->joints;
    if (joints->goes_on != NULL)
        joints->goes_on(joints->context, set);
}

static void tune(void *context, struct process_set *set)
{
    if (set->id != 0)
        set_tune(set, context);
}

/* In the thread of set 0, which is the only one that makes sets. The numbers matter to each rank
 * alone, so the other sets may change at any time. */
static void tuned(void *context, const struct tuning *tuning)
{
    struct world *world = context;
    struct tune_point next = tuning->next;
    sets_each(&world->sets, tune, &next);
    world->knobs.threshold = next.threshold;
    world->knobs.cycle_ns = next.cycle_ns;
    tune_log_row(world->tune_log, tuning, world->knobs.capacity > 0);
}

static void watch(void *context, int fd, int32_t set, int rank)
{
    const struct world *world = context;
    watch_add(world->watch, fd, set, rank);
}

static void gone(void *context, int32_t id, int rank)
{
    struct process_set *set AUTO_SET = sets_hold(&((struct world *)context)->sets, id);
    if (set != NULL)
        set_gone(set, rank);
}

/* ---- Start and end --------------------------------------------------------------------------- */

/* What can be checked before the size of the job is known. */
static enum hvd_status check_options(const struct hvd_init_options *options, struct error *err)
{
    bool wrong = options->set_count < 0 || (options->set_count > 0 && options->sets == NULL);
    for (int32_t i = 0; !wrong && i < options->set_count; i++)
        wrong = options->sets[i].ranks == NULL || options->sets[i].count < 1;
    if (!wrong)
        return HVD_OK;
    error_set(err, "the list of process sets is not valid: a set needs at least one rank");
    return HVD_ERR_ARGUMENT;
}

static void add_static_sets(const struct hvd_init_options *options, struct buf *settings)
{
    AUTO_BUF struct buf text = BUF_INIT(CORE_MESSAGE_MAX);
    for (int32_t s = 0; s < options->set_count; s++) {
        buf_puts(&text, s == 0 ? "" : "; ");
        for (int32_t i = 0; i < options->sets[s].count; i++)
            buf_printf(&text, "%s%d", i == 0 ? "" : ",", options->sets[s].ranks[i]);
    }
    settings_add(settings, "the list of static process sets", buf_text(&text));
}

static void make_maker(struct world *world)
{
    world->maker = (struct set_maker){.engine = world->engine,
                                      .engine_world = world->engine_world,
                                      .place = &world->place,
                                      .setup = &world->setup,
                                      .knobs = &world->knobs,
                                      .trace = world->joints.trace,
                                      .owner = &world->owner,
                                      .stop = world->failure.stop,
                                      .sets = &world->sets,
                                      .comm_lock = &world->comm_lock};
}

static enum hvd_status make_all_sets(struct world *world, const struct hvd_init_options *options,
                                     struct error *err)
{
    make_maker(world);
    enum hvd_status status = set_maker_first(&world->maker, world->first_comm, err);
    world->first_comm = NULL;
    for (int32_t s = 0; s < options->set_count && status == HVD_OK; s++)
        status = set_maker_static(&world->maker, &options->sets[s], err);
    return status;
}

/* Before any thread starts: what the ranks must agree on, and who is where. */
static enum hvd_status compare_ranks(struct world *world, const struct hvd_init_options *options,
                                     struct error *err)
{
    int size = world->place.size;
    AUTO_BUF struct buf settings = BUF_INIT(CORE_MESSAGE_MAX);
    int *ranks AUTO_FREE = members_all(size);
    enum hvd_status status =
        world->engine->comm_create(world->engine_world, 0, ranks, size, &world->first_comm, err);
    if (status != HVD_OK)
        return status;
    const struct message_set all = {world->engine, world->first_comm, world->place.rank, size,
                                    world->setup.timeout_ms};
    settings_add(&settings, "the version of libhvd", HVDRUN_VERSION);
    knobs_add(&world->knobs, &settings);
    add_static_sets(options, &settings);
    status = knobs_agree(&all, &settings, err);
    if (status == HVD_OK)
        status = messages_compare(&all, &world->place.local_size, sizeof world->place.local_size,
                                  &world->homogeneous, err);
    return status;
}

static enum hvd_status open_engine(struct world *world, setup_get *get, struct error *err)
{
    const char *name = NULL;
    enum hvd_status status = setup_read(&world->setup, get, err);
    if (status == HVD_OK)
        status = engine_choose(&world->setup, get, &name, err);
    if (status != HVD_OK)
        return status;
    char *folder AUTO_FREE = engine_folder();
    status = engine_load(folder, name, &world->engine, err);
    if (status == HVD_OK)
        status = world->engine->open(&world->setup, &world->engine_world, &world->place, err);
    return status;
}

enum hvd_status world_open(const struct hvd_init_options *options, setup_get *get,
                           const struct loop_joints *joints, uint32_t generation,
                           struct world **world, struct error *err)
{
    struct world *made = mem_alloc(sizeof *made);
    made->joints = *joints;
    made->gpus = gpus_create();
    made->owner = (struct set_owner){made,   NULL,    made->gpus, lost,  failure,
                                     change, stalled, goes_on,    tuned, watch};
    pthread_mutex_init(&made->comm_lock, NULL);
    sets_init(&made->sets);
    enum hvd_status status = check_options(options, err);
    if (failure_init(&made->failure, err) != 0)
        status = HVD_ERR_MEMORY;
    if (status == HVD_OK)
        status = knobs_read(&made->knobs, get, err);
    if (status == HVD_OK)
        status = open_engine(made, get, err);
    if (status == HVD_OK)
        status = compare_ranks(made, options, err);
    if (status == HVD_OK) {
        made->handles = made->owner.handles = handles_create(generation, err);
        status = made->handles == NULL ? HVD_ERR_MEMORY : HVD_OK;
    }
    if (status == HVD_OK && made->place.rank == 0 && made->knobs.tuner.on)
        made->tune_log = tune_log_open(made->knobs.tune_log);
    if (status == HVD_OK) {
        made->watch = watch_start(gone, made, err);
        status = made->watch == NULL ? HVD_ERR_MEMORY : HVD_OK;
    }
    if (status == HVD_OK)
        status = make_all_sets(made, options, err);
    if (status == HVD_OK)
        *world = made;
    else {
        world_stop(made);
        world_destroy(made);
    }
    return status;
}

static void leave(void *context, struct process_set *set)
{
    (void)context;
    set_leave(set, HVD_ERR_SHUT_DOWN);
}

void world_stop(struct world *world)
{
    sets_each(&world->sets, leave, NULL);
    /* Without the lock. The thread of set 0, which changes the list, is the first that ends. */
    for (int32_t i = 0; i < world->sets.count; i++)
        set_maker_end(&world->maker, world->sets.items[i]);
}

uint32_t world_destroy(struct world *world)
{
    watch_stop(world->watch);
    uint32_t generation = handles_destroy(world->handles);
    sets_destroy(&world->sets);
    if (world->tune_log != NULL)
        fclose(world->tune_log);
    gpus_destroy(world->gpus);
    if (world->engine_world != NULL) {
        world->engine->comm_destroy(world->first_comm);
        world->engine->close(world->engine_world);
    }
    pthread_mutex_destroy(&world->comm_lock);
    failure_destroy(&world->failure);
    free(world);
    return generation;
}
