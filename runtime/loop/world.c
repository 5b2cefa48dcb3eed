/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/world.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "engine/choose.h"
#include "engine/load.h"
#include "loop/agree.h"
#include "loop/sets.h"
#include "loop/tune_log.h"
#include "loop/watch.h"

#define NS_PER_MS 1000000
/* A rank that is silent for so many time-outs of the engine is lost. An operation may take one. */
#define SILENCE_TIMEOUTS 2

struct world {
    const struct engine *engine;
    struct engine_world *engine_world;
    struct engine_setup setup;
    struct engine_place place;
    struct knobs knobs;
    struct loop_joints joints;
    struct handles *handles;
    struct gpus *gpus;
    struct set_owner owner;
    struct watch *watch;
    struct engine_comm *first_comm; /* of all ranks, until set 0 takes it */
    int stop;                       /* an eventfd, readable after a failure */
    bool homogeneous;
    pthread_mutex_t lock, comm_lock;
    struct sets sets;
    struct tune_log *tune_log; /* NULL: none, or on another rank; for the thread of set 0 */
    enum hvd_status failure;
    char failure_text[ERROR_TEXT_MAX];
};

const struct engine_place *world_place(const struct world *world)
{
    return &world->place;
}

bool world_is_homogeneous(const struct world *world)
{
    return world->homogeneous;
}

const char *world_engine(const struct world *world)
{
    return world->engine->name;
}

struct handles *world_handles(struct world *world)
{
    return world->handles;
}

enum hvd_status world_mpi_members(struct world *world, const void *communicator, int32_t **ranks,
                                  int32_t *count, struct error *err)
{
    const struct engine *engine = world->engine;
    if (engine->mpi_members != NULL)
        return engine->mpi_members(world->engine_world, communicator, ranks, count, err);
    error_set(err,
              "the engine '%s' does not know communicators of MPI: start the program with hvdrun "
              "--mpi=pmix --controller mpi",
              engine->name);
    return HVD_ERR_UNSUPPORTED;
}

struct process_set *world_set(struct world *world, int32_t id)
{
    pthread_mutex_lock(&world->lock);
    struct process_set *set = sets_find(&world->sets, id);
    if (set != NULL)
        set_hold(set);
    pthread_mutex_unlock(&world->lock);
    return set;
}

int32_t world_set_ids(struct world *world, int32_t *ids, int32_t room)
{
    pthread_mutex_lock(&world->lock);
    int32_t count = world->sets.count;
    for (int32_t i = 0; i < count && i < room; i++)
        ids[i] = set_id(world->sets.items[i]);
    pthread_mutex_unlock(&world->lock);
    return count;
}

/* ---- Failure --------------------------------------------------------------------------------- */

void world_lost(struct world *world, enum hvd_status status, const char *text)
{
    pthread_mutex_lock(&world->lock);
    bool first = world->failure == HVD_OK;
    if (first) {
        world->failure = status;
        snprintf(world->failure_text, sizeof world->failure_text, "%s", text);
    }
    pthread_mutex_unlock(&world->lock);
    if (!first)
        return;
    const uint64_t one = 1;
    ssize_t done = fd_write(world->stop, &one, sizeof one);
    (void)done;
    world->engine->abort(world->engine_world);
    pthread_mutex_lock(&world->lock);
    for (int32_t i = 0; i < world->sets.count; i++)
        set_ring(world->sets.items[i]);
    pthread_mutex_unlock(&world->lock);
}

void world_left(struct world *world, int rank)
{
    pthread_mutex_lock(&world->lock);
    for (int32_t i = 0; i < world->sets.count; i++)
        set_left(world->sets.items[i], rank);
    pthread_mutex_unlock(&world->lock);
}

enum hvd_status world_failure(struct world *world, struct error *err)
{
    pthread_mutex_lock(&world->lock);
    enum hvd_status status = world->failure;
    if (status != HVD_OK)
        error_set(err, "%s", world->failure_text);
    pthread_mutex_unlock(&world->lock);
    return status;
}

static void lost(void *context, enum hvd_status status, const char *text)
{
    world_lost(context, status, text);
}

static enum hvd_status failure(void *context, struct error *err)
{
    return world_failure(context, err);
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

/* In the thread of set 0, which is the only one that makes sets. The numbers matter to each rank
 * alone, so the other sets may change at any time. */
static void tuned(void *context, const struct tuning *tuning)
{
    struct world *world = context;
    pthread_mutex_lock(&world->lock);
    for (int32_t i = 0; i < world->sets.count; i++)
        if (set_id(world->sets.items[i]) != 0)
            set_tune(world->sets.items[i], &tuning->next);
    pthread_mutex_unlock(&world->lock);
    world->knobs.threshold = tuning->next.threshold;
    world->knobs.cycle_ns = tuning->next.cycle_ns;
    tune_log_row(world->tune_log, tuning);
}

static void watch(void *context, int fd, int32_t set, int rank)
{
    const struct world *world = context;
    watch_add(world->watch, fd, set, rank);
}

static void gone(void *context, int32_t id, int rank)
{
    struct process_set *set = world_set(context, id);
    if (set != NULL)
        set_gone(set, rank);
    set_release(set);
}

/* ---- Process sets ---------------------------------------------------------------------------- */

static struct process_set *make_set(struct world *world, int32_t id, const int *ranks, int count)
{
    struct set_setup setup = {
        .id = id,
        .ranks = ranks,
        .count = count,
        .world_size = world->place.size,
        .own_rank = world->place.rank,
        .knobs = {.capacity = world->knobs.capacity,
                  .threshold = world->knobs.threshold,
                  .cycle_ns = world->knobs.cycle_ns,
                  .warn_ns = world->knobs.warn_ns,
                  .give_up_ns = world->knobs.give_up_ns,
                  .tuner = id == 0 ? world->knobs.tuner : (struct tuner_setup){0},
                  .silence_ns = SILENCE_TIMEOUTS * world->setup.timeout_ms * NS_PER_MS,
                  .trace = world->joints.trace},
        .engine = world->engine,
        .interface = world->setup.interface,
        .timeout_ms = world->setup.timeout_ms,
        .stop = world->stop,
        .completes_at_launch = world->knobs.completes_at_launch,
        .owner = &world->owner,
    };
    return set_create(&setup);
}

static void destroy_comm(struct world *world, struct engine_comm *comm)
{
    if (comm == NULL)
        return;
    pthread_mutex_lock(&world->comm_lock);
    world->engine->comm_destroy(comm);
    pthread_mutex_unlock(&world->comm_lock);
}

/* Members make the communicator and start the thread; others have nothing to do. */
static enum hvd_status start_set(struct world *world, struct process_set *set, struct error *err)
{
    struct engine_comm *comm = NULL;
    if (set_rank(set) < 0)
        return HVD_OK;
    pthread_mutex_lock(&world->comm_lock);
    enum hvd_status status = world->engine->comm_create(world->engine_world, (uint64_t)set_id(set),
                                                        set_ranks(set), set_size(set), &comm, err);
    pthread_mutex_unlock(&world->comm_lock);
    if (status != HVD_OK)
        return status;
    status = set_start(set, comm, err);
    if (status != HVD_OK)
        destroy_comm(world, set_stop(set));
    return status;
}

static void register_set(struct world *world, struct process_set *set)
{
    pthread_mutex_lock(&world->lock);
    sets_add_take(&world->sets, set);
    pthread_mutex_unlock(&world->lock);
}

static int *ranks_of(const struct request *request)
{
    int *ranks = mem_array((size_t)request->dims, sizeof *ranks);
    for (int32_t i = 0; i < request->dims; i++)
        ranks[i] = (int)request->shape[i];
    return ranks;
}

/* In the thread of set 0, so all ranks do it in the same order. The members' result counts for all
 * ranks: a set that one of them could not make does not exist. */
static enum hvd_status add_set(struct world *world, const struct request *request,
                               struct outcome *outcome, struct error *err)
{
    int *ranks AUTO_FREE = ranks_of(request);
    pthread_mutex_lock(&world->lock);
    const struct process_set *same = sets_of_ranks(&world->sets, ranks, request->dims);
    struct process_set *all = sets_find(&world->sets, 0);
    int32_t id = same != NULL ? set_id(same) : world->sets.next;
    if (same == NULL)
        world->sets.next++;
    pthread_mutex_unlock(&world->lock);
    outcome->number = id;
    if (same != NULL) {
        outcome->status = HVD_ERR_SET_EXISTS;
        outcome->text = "a process set with these ranks exists";
        return HVD_OK;
    }
    struct process_set *set = make_set(world, id, ranks, request->dims);
    enum hvd_status status = start_set(world, set, err);
    bool everywhere = status == HVD_OK;
    if (status == HVD_OK || status == HVD_ERR_MEMORY)
        status = agree_on_success(world->engine, set_comm(all), status == HVD_OK,
                                  world->setup.timeout_ms, &everywhere, err);
    if (status == HVD_OK && everywhere) {
        register_set(world, set);
        return HVD_OK;
    }
    if (status == HVD_OK) {
        error_set(err, "a rank could not make the process set");
        status = HVD_ERR_ENGINE;
    }
    world_lost(world, status, err->text);
    set_ring(set); /* its thread may run already, and nobody else knows it */
    destroy_comm(world, set_stop(set));
    set_release(set);
    outcome->status = status;
    outcome->text = err->text;
    return status;
}

static enum hvd_status remove_set(struct world *world, const struct request *request,
                                  struct outcome *outcome)
{
    pthread_mutex_lock(&world->lock);
    struct process_set *set = sets_remove(&world->sets, request->root);
    pthread_mutex_unlock(&world->lock);
    if (set == NULL) {
        outcome->status = HVD_ERR_UNKNOWN_SET;
        outcome->text = "there is not a process set with this number";
        return HVD_OK;
    }
    set_leave(set, HVD_ERR_UNKNOWN_SET);
    destroy_comm(world, set_stop(set));
    set_release(set);
    return HVD_OK;
}

static enum hvd_status change(void *context, const struct request *request, struct outcome *outcome,
                              struct error *err)
{
    struct world *world = context;
    return request->kind == KIND_ADD_SET ? add_set(world, request, outcome, err)
                                         : remove_set(world, request, outcome);
}

/* ---- Start and end --------------------------------------------------------------------------- */

static int compare_ints(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

int *world_sorted_ranks(const int32_t *ranks, int32_t count, int size, struct error *err)
{
    if (ranks == NULL || count < 1 || count > size) {
        error_set(err, "a process set has 1 to %d ranks, and not %d", size, count);
        return NULL;
    }
    int *sorted = mem_array((size_t)count, sizeof *sorted);
    for (int32_t i = 0; i < count; i++)
        sorted[i] = ranks[i];
    qsort(sorted, (size_t)count, sizeof *sorted, compare_ints);
    for (int32_t i = 0; i < count; i++) {
        bool twice = i > 0 && sorted[i] == sorted[i - 1];
        if (!twice && sorted[i] >= 0 && sorted[i] < size)
            continue;
        error_set(err, "the rank %d of a process set %s", sorted[i],
                  twice ? "occurs twice" : "is not in the job");
        free(sorted);
        return NULL;
    }
    return sorted;
}

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

static void add_static_sets(const struct hvd_init_options *options, struct settings *settings)
{
    AUTO_BUF struct buf text = BUF_INIT(CORE_MESSAGE_MAX);
    for (int32_t s = 0; s < options->set_count; s++) {
        buf_puts(&text, s == 0 ? "" : "; ");
        for (int32_t i = 0; i < options->sets[s].count; i++)
            buf_printf(&text, "%s%d", i == 0 ? "" : ",", options->sets[s].ranks[i]);
    }
    settings_add(settings, "the list of static process sets", buf_text(&text));
}

static enum hvd_status make_static_set(struct world *world, const struct hvd_ranks *wanted,
                                       struct error *err)
{
    int *ranks AUTO_FREE = world_sorted_ranks(wanted->ranks, wanted->count, world->place.size, err);
    if (ranks == NULL)
        return HVD_ERR_ARGUMENT;
    if (sets_of_ranks(&world->sets, ranks, wanted->count) != NULL) {
        error_set(err, "two process sets have the same ranks, or one has all ranks of the job");
        return HVD_ERR_SET_EXISTS;
    }
    struct process_set *set = make_set(world, world->sets.next, ranks, wanted->count);
    enum hvd_status status = start_set(world, set, err);
    if (status == HVD_OK)
        register_set(world, set);
    else
        set_release(set);
    return status;
}

static enum hvd_status make_all_sets(struct world *world, const struct hvd_init_options *options,
                                     struct error *err)
{
    int size = world->place.size;
    int *ranks AUTO_FREE = mem_array((size_t)size, sizeof *ranks);
    for (int i = 0; i < size; i++)
        ranks[i] = i;
    struct process_set *all = make_set(world, 0, ranks, size);
    register_set(world, all);
    enum hvd_status status = set_start(all, world->first_comm, err);
    world->first_comm = NULL;
    for (int32_t s = 0; s < options->set_count && status == HVD_OK; s++)
        status = make_static_set(world, &options->sets[s], err);
    return status;
}

/* Before any thread starts: what the ranks must agree on, and who is where. */
static enum hvd_status compare_ranks(struct world *world, const struct hvd_init_options *options,
                                     struct error *err)
{
    int size = world->place.size, rank = world->place.rank;
    struct settings settings;
    int *ranks AUTO_FREE = mem_array((size_t)size, sizeof *ranks);
    for (int i = 0; i < size; i++)
        ranks[i] = i;
    enum hvd_status status =
        world->engine->comm_create(world->engine_world, 0, ranks, size, &world->first_comm, err);
    if (status != HVD_OK)
        return status;
    struct engine_comm *comm = world->first_comm;
    settings_init(&settings);
    settings_add(&settings, "the version of libhvd", HVDRUN_VERSION);
    knobs_add(&world->knobs, &settings);
    add_static_sets(options, &settings);
    status = agree(world->engine, comm, rank, size, &settings, world->setup.timeout_ms, err);
    settings_destroy(&settings);
    uint64_t words[2] = {(uint64_t)world->place.local_size, ~(uint64_t)world->place.local_size};
    if (status == HVD_OK)
        status = world->engine->and_words(comm, words, 2, world->setup.timeout_ms, err);
    world->homogeneous = words[0] == ~words[1]; /* no bit differs anywhere */
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
        status = world->engine->open(&world->setup, &world->engine_world, err);
    if (status == HVD_OK)
        world->engine->place(world->engine_world, &world->place);
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
    pthread_mutex_init(&made->lock, NULL);
    pthread_mutex_init(&made->comm_lock, NULL);
    made->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    enum hvd_status status = check_options(options, err);
    if (made->stop < 0) {
        error_errno(err, errno, "cannot make an eventfd");
        status = HVD_ERR_MEMORY;
    }
    if (status == HVD_OK)
        status = knobs_read(&made->knobs, get, err);
    if (status == HVD_OK)
        status = open_engine(made, get, err);
    if (status == HVD_OK)
        status = compare_ranks(made, options, err);
    made->handles = made->owner.handles = handles_create(generation);
    if (status == HVD_OK && made->place.rank == 0 && made->knobs.tuner.on)
        made->tune_log = tune_log_open(made->knobs.tune_log, made->knobs.capacity > 0);
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

void world_stop(struct world *world)
{
    pthread_mutex_lock(&world->lock);
    for (int32_t i = 0; i < world->sets.count; i++)
        set_leave(world->sets.items[i], HVD_ERR_SHUT_DOWN);
    pthread_mutex_unlock(&world->lock);
    /* The thread of set 0, which changes the list, is the first that ends. */
    for (int32_t i = 0; i < world->sets.count; i++)
        destroy_comm(world, set_stop(world->sets.items[i]));
}

uint32_t world_destroy(struct world *world)
{
    watch_stop(world->watch);
    uint32_t generation = handles_destroy(world->handles);
    sets_destroy(&world->sets);
    tune_log_close(world->tune_log);
    gpus_destroy(world->gpus);
    if (world->engine_world != NULL) {
        world->engine->comm_destroy(world->first_comm);
        world->engine->close(world->engine_world);
    }
    pthread_mutex_destroy(&world->lock);
    pthread_mutex_destroy(&world->comm_lock);
    fd_close(&world->stop);
    free(world);
    return generation;
}
