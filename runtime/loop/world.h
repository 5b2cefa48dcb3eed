/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job as one rank sees it, between hvd_init() and hvd_shutdown(): the engine, the process sets,
 * the handles, and whether a rank was lost.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "core/action.h"
#include "core/trace.h"
#include "include/hvd.h"
#include "loop/knobs.h"
#include "loop/sets.h"

/* Where other parts of libhvd join the loop: a timeline, and the line to the launcher. */
struct loop_joints {
    /* Of all process sets, on their root: a tensor has waited for too long. In the thread of the
     * set; it must return soon. True: the user hears of it in another way. NULL: none. */
    bool (*stalled)(void *context, int32_t set, const struct stall *stall);
    void (*goes_on)(void *context, int32_t set); /* no tensor of the set waits too long any more */
    void *context;
    const struct trace *trace; /* NULL: no timeline. It must live until the library is shut down. */
};

/* Why the job has failed. The first reason counts. */
struct failure {
    pthread_mutex_t lock; /* of those who set it */
    int stop;             /* an eventfd: readable after a failure */
    atomic_int status;    /* enum hvd_status: once it is not HVD_OK, nothing changes any more */
    char text[ERROR_TEXT_MAX];
};

/* Others read it. */
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
    struct set_maker maker;
    struct watch *watch;
    struct engine_comm *first_comm; /* of all ranks, until set 0 takes it */
    bool homogeneous;
    pthread_mutex_t comm_lock;
    struct sets sets;
    struct failure failure;
    FILE *tune_log; /* NULL: none, or on another rank; for the thread of set 0 */
};

/* Of a process set whose root is this rank: the oldest tensor of a group of ranks that wait. NULL:
 * nothing waits in the set. */
typedef void loop_wait(void *context, int32_t set, const struct stall *stall);

/* Opens the engine, compares the settings of the ranks, and makes the set 0 and the static sets.
 * `generation` is for the handles. */
enum hvd_status world_open(const struct hvd_init_options *options, setup_get *get,
                           const struct loop_joints *joints, uint32_t generation,
                           struct world **world, struct error *err);
/* Ends all sets on all ranks. Then every handle is complete. */
void world_stop(struct world *world);
/* Nobody may use it any more. Returns the generation for the next time. */
uint32_t world_destroy(struct world *world);

/* The ranks of the MPI_Comm that `communicator` points to, for the caller to free. */
enum hvd_status world_mpi_members(struct world *world, const void *communicator, int32_t **ranks,
                                  int32_t *count, struct error *err);

/* Everything that is pending, or comes later, fails with `status`. The first call counts. */
void world_lost(struct world *world, enum hvd_status status, const char *text);
/* A global rank has ended with status 0: see set_left(). */
void world_left(struct world *world, int rank);
/* As loop_waits(). */
void world_waits(struct world *world, loop_wait *take, void *context);
/* HVD_OK, or why everything fails. */
enum hvd_status world_failure(struct world *world, struct error *err);
