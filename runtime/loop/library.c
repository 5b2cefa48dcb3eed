/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/library.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "engine/engine.h"
#include "engine/load.h"
#include "engine/nccl/libraries.h"

const char mem_last_words[] = ENGINE_LAST_WORDS;

enum state { DOWN, STARTING, UP, STOPPING };

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* state or users */
    atomic_int state;       /* enum state; changes with the lock held */
    struct world *world;    /* changes when nobody uses it: the state is not UP, and users is 0 */
    atomic_int users;
    uint32_t generation;
    bool watches_forks;   /* mark_child() is registered */
    atomic_bool is_child; /* this process was forked while the library was up */
} library = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static _Thread_local char last_error[ERROR_TEXT_MAX];

enum hvd_status library_fail(enum hvd_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(last_error, sizeof last_error, format, args);
    va_end(args);
    return status;
}

const char *hvd_error_text(void)
{
    return last_error;
}

/* In a forked child. The lock may be held by a thread that it does not have: it does not take it.
 */
static void mark_child(void)
{
    if (atomic_load(&library.state) != DOWN)
        atomic_store(&library.is_child, true);
}

bool library_is_child(void)
{
    return atomic_load_explicit(&library.is_child, memory_order_relaxed);
}

/* Each call of the program comes here, so it takes no lock. A user that counts itself before it
 * looks at the state is seen by library_stop(), which looks at the users after it changes the
 * state.
 */
struct world *library_enter(void)
{
    if (!library_is_child()) {
        atomic_fetch_add(&library.users, 1);
        if (atomic_load(&library.state) == UP)
            return library.world;
        library_leave();
    }
    library_fail(HVD_ERR_NOT_INITIALIZED, "the library is not initialized: call hvd_init()");
    return NULL;
}

void library_leave(void)
{
    if (atomic_fetch_sub(&library.users, 1) > 1 || atomic_load(&library.state) != STOPPING)
        return;
    pthread_mutex_lock(&library.lock);
    pthread_cond_broadcast(&library.changed);
    pthread_mutex_unlock(&library.lock);
}

void library_leave_at(struct world **world)
{
    if (*world != NULL)
        library_leave();
}

static void set_state(enum state state)
{
    pthread_mutex_lock(&library.lock);
    atomic_store(&library.state, state);
    pthread_cond_broadcast(&library.changed);
    pthread_mutex_unlock(&library.lock);
}

/* Waits until nobody starts or stops the library. Then changes `from` to `to`, or returns false. */
static bool begin(enum state from, enum state to)
{
    pthread_mutex_lock(&library.lock);
    while (atomic_load(&library.state) == STARTING || atomic_load(&library.state) == STOPPING)
        pthread_cond_wait(&library.changed, &library.lock);
    bool begun = atomic_load(&library.state) == (int)from;
    if (begun)
        atomic_store(&library.state, to);
    pthread_mutex_unlock(&library.lock);
    return begun;
}

enum hvd_status library_start(const struct hvd_init_options *options,
                              const struct loop_joints *joints)
{
    struct hvd_init_options own = HVD_INIT_OPTIONS_INIT;
    struct error err = ERROR_INIT;
    if (options != NULL && options->size < sizeof options->size)
        return library_fail(HVD_ERR_ARGUMENT, "the size of the options is not set");
    if (options != NULL)
        memcpy(&own, options, options->size < sizeof own ? options->size : sizeof own);
    if (library_is_child())
        return library_fail(HVD_ERR_NOT_INITIALIZED,
                            "a forked child cannot use the library of its parent");
    if (!begin(DOWN, STARTING))
        return HVD_OK;
    if (!library.watches_forks)
        library.watches_forks = pthread_atfork(NULL, NULL, mark_child) == 0;
    enum hvd_status status =
        world_open(&own, getenv, joints, library.generation, &library.world, &err);
    set_state(status == HVD_OK ? UP : DOWN);
    return status == HVD_OK ? HVD_OK : library_fail(status, "%s", err.text);
}

enum hvd_status library_stop(void)
{
    if (library_is_child() || !begin(UP, STOPPING))
        return HVD_OK;
    world_stop(library.world); /* those that wait for a handle return */
    pthread_mutex_lock(&library.lock);
    while (atomic_load(&library.users) > 0)
        pthread_cond_wait(&library.changed, &library.lock);
    struct world *world = library.world;
    library.world = NULL;
    pthread_mutex_unlock(&library.lock);
    library.generation = world_destroy(world);
    set_state(DOWN);
    return HVD_OK;
}

bool hvd_is_initialized(void)
{
    if (library_is_child())
        return false;
    return atomic_load(&library.state) == UP;
}

void loop_peer_lost(int rank, const char *why)
{
    char text[ERROR_TEXT_MAX];
    struct world *world AUTO_LEAVE = library_enter();
    if (world == NULL)
        return;
    snprintf(text, sizeof text, "rank %d was lost: %s", rank, why);
    if (rank >= 0 && rank < world->place.size && rank != world->place.rank)
        world_lost(world, HVD_ERR_PEER_LOST, text);
}

void loop_peer_left(int rank)
{
    struct world *world AUTO_LEAVE = library_enter();
    if (world != NULL && rank != world->place.rank)
        world_left(world, rank);
}

void loop_waits(loop_wait *take, void *context)
{
    struct world *world AUTO_LEAVE = library_enter();
    if (world != NULL)
        world_waits(world, take, context);
}

uint64_t loop_completed(void)
{
    struct world *world AUTO_LEAVE = library_enter();
    return world == NULL ? 0 : handles_completed(world->handles);
}

/* ---- Functions of hvd.h: places, what was built in ------------------------------------------- */

/* -1: the library is not initialized. */
static struct engine_place place(void)
{
    static const struct engine_place nowhere = {-1, -1, -1, -1, -1, -1};
    struct world *world AUTO_LEAVE = library_enter();
    return world == NULL ? nowhere : world->place;
}

int hvd_rank(void)
{
    return place().rank;
}

int hvd_size(void)
{
    return place().size;
}

int hvd_local_rank(void)
{
    return place().local_rank;
}

int hvd_local_size(void)
{
    return place().local_size;
}

int hvd_cross_rank(void)
{
    return place().cross_rank;
}

int hvd_cross_size(void)
{
    return place().cross_size;
}

int hvd_failure(void)
{
    struct error err = ERROR_INIT;
    struct world *world AUTO_LEAVE = library_enter();
    if (world == NULL)
        return HVD_ERR_NOT_INITIALIZED;
    enum hvd_status status = world_failure(world, &err);
    return status == HVD_OK ? HVD_OK : (int)library_fail(status, "%s", err.text);
}

bool hvd_is_homogeneous(void)
{
    struct world *world AUTO_LEAVE = library_enter();
    return world != NULL && world->homogeneous;
}

int hvd_nccl_version(void)
{
    return nccl_version();
}

bool hvd_engine_built(const char *engine)
{
    if (engine != NULL && strcmp(engine, "nccl") == 0)
        return nccl_version() > 0;
    char *folder AUTO_FREE = engine_folder();
    return engine != NULL && strlen(engine) < 32 && strchr(engine, '/') == NULL &&
           engine_exists(folder, engine);
}

const char *hvd_engine(void)
{
    struct world *world AUTO_LEAVE = library_enter();
    return world == NULL ? "" : world->engine->name;
}
