/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job as one rank sees it, between hvd_init() and hvd_shutdown(): the engine, the process sets,
 * the handles, and whether a rank was lost.
 */
#pragma once

#include "core/action.h"
#include "core/trace.h"
#include "include/hvd.h"
#include "loop/knobs.h"
#include "loop/set.h"

struct world;

/*
 * Where other parts of libhvd join the loop: a timeline, and the line to the launcher. They may be
 * set at any time; a call that has begun goes on with what was set before.
 */
struct loop_joints {
    /* Of all process sets, on their root: a tensor has waited for too long. In the thread of the
     * set; it must return soon. True: the user hears of it in another way. NULL: none. */
    bool (*stalled)(void *context, int32_t set, const struct stall *stall);
    void (*goes_on)(void *context, int32_t set); /* no tensor of the set waits too long any more */
    void *context;
    const struct trace *trace; /* NULL: no timeline. It must live until the library is shut down. */
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

const struct engine_place *world_place(const struct world *world);
bool world_is_homogeneous(const struct world *world);
const char *world_engine(const struct world *world);
struct handles *world_handles(struct world *world);

/* The ranks of the MPI_Comm that `communicator` points to, for the caller to free. */
enum hvd_status world_mpi_members(struct world *world, const void *communicator, int32_t **ranks,
                                  int32_t *count, struct error *err);

/* A set, which the caller releases; NULL: there is not such a set. */
struct process_set *world_set(struct world *world, int32_t id);
/* The numbers of all sets, ascending. Returns how many there are. */
int32_t world_set_ids(struct world *world, int32_t *ids, int32_t room);

/* Everything that is pending, or comes later, fails with `status`. The first call counts. */
void world_lost(struct world *world, enum hvd_status status, const char *text);
/* A global rank has ended with status 0: see set_left(). */
void world_left(struct world *world, int rank);
/* As loop_waits(). */
void world_waits(struct world *world, loop_wait *take, void *context);
/* HVD_OK, or why everything fails. */
enum hvd_status world_failure(struct world *world, struct error *err);
