/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process set, and the thread that serves it.
 *
 * Each set of which this rank is a member has a thread, communicators and a control channel of its
 * own. So different sets proceed at the same time, as hvd.h promises. The calls of an engine block,
 * so a thread that serves several sets would keep all of them waiting for the slowest. A thread
 * that has nothing to do sleeps in poll(): submissions and messages wake it, and nothing else does.
 *
 * Locks. `lock` guards the core. Programs' threads hold it to submit. The set's own thread holds it
 * to feed the core, and never during an operation, a wait or a call of the owner.
 */
#pragma once

#include "core/config.h"
#include "core/core.h"
#include "engine/engine.h"
#include "loop/executor.h"

/* What a process set is made of. */
struct set_setup {
    int32_t id;
    const int *ranks;                /* global, ascending; copied */
    int count, world_size, own_rank; /* `own_rank`: global */
    struct core_config knobs;        /* only the knobs and the trace are used */
    const struct engine *engine;
    const char *interface;
    int64_t timeout_ms;
    int stop;                      /* a descriptor: readable when all sets fail */
    bool completes_at_launch;      /* see knobs.h */
    const struct set_owner *owner; /* borrowed */
};

struct process_set;

struct process_set *set_create(const struct set_setup *setup);

/* Opens the set on its members: takes the communicators, one for each lane of the engine, opens the
 * channel, starts the threads. */
enum hvd_status set_start(struct process_set *set, struct engine_comm **comms, struct error *err);

/* Waits for the threads, which must end: see set_leave(). */
void set_stop(struct process_set *set);
/* After that: the communicator of a lane, for the caller to destroy; NULL: there is none. */
struct engine_comm *set_take_comm(struct process_set *set, int lane);

/* Sets live as long as somebody holds them. */
struct process_set *set_hold(struct process_set *set);
void set_release(struct process_set *set); /* accepts NULL */

/* Submits `count` requests at once, or none of them. Takes them, also on failure. The tokens are
 * those of a handle, in the same order. */
enum hvd_status set_submit(struct process_set *set, struct request *requests,
                           struct submission *tokens, size_t count, struct error *err);
/* A thread waits for it. */
void set_hurry(struct process_set *set, const struct submission *submission);
/* The set should end on all ranks, with HVD_ERR_SHUT_DOWN or HVD_ERR_UNKNOWN_SET. */
void set_leave(struct process_set *set, enum hvd_status why);
/* Another set was tuned: this one gets the same. */
void set_tune(struct process_set *set, const struct tune_point *point);
void set_ring(struct process_set *set); /* its thread looks at owner->failure() */

/* The connection to a global rank has ended, another thread says. The set's own thread may be in an
 * operation that does not notice. */
void set_gone(struct process_set *set, int rank);

/* The global rank has ended with status 0, the launcher says. If it is a member, the set must end
 * within a second; otherwise the rank is lost. */
void set_left(struct process_set *set, int rank);

/* As core_waits(), from any thread. -1: this rank is not the root. */
int set_waits(struct process_set *set, struct stall stalls[CORE_WAITS_MAX]);

struct gpus *set_gpus(const struct process_set *set);
/* This rank, which is a member, should use the GPU for the set. Returns the one that it uses. */
int set_claim_gpu(const struct process_set *set, int device);

int32_t set_id(const struct process_set *set);
int set_size(const struct process_set *set);
int set_rank(const struct process_set *set); /* of this process; -1: not a member */
const int *set_ranks(const struct process_set *set);
struct engine_comm *set_comm(const struct process_set *set); /* for its thread alone */
