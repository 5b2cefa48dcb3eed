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

#include <pthread.h>
#include <stdatomic.h>

#include "core/config.h"
#include "core/core.h"
#include "engine/setup.h"
#include "loop/channel.h"
#include "loop/executor.h"
#include "loop/knobs.h"

struct sets;

/* What makes and removes the sets of a job: what they have in common. */
struct set_maker {
    const struct engine *engine;
    struct engine_world *engine_world;
    const struct engine_place *place; /* borrowed, as all pointers */
    const struct engine_setup *setup;
    const struct knobs *knobs; /* those of the next set */
    const struct trace *trace;
    const struct set_owner *owner;
    int stop; /* readable after a failure */
    struct sets *sets;
    /* Held while communicators are made or destroyed, as engine/engine.h demands. */
    pthread_mutex_t *comm_lock;
};

/* Others read the first five. */
struct process_set {
    const struct set_maker *maker;
    int32_t id;
    int *ranks, count; /* global, ascending */
    int rank;          /* of this process in the set; -1: not a member */
    atomic_int holders;
    struct executor executor;
    struct channel *channel;
    pthread_t thread;
    bool started;
    pthread_mutex_t lock;
    struct core *core;
    /* Both under `lock`. Until when the thread sleeps (INT64_MIN: it is awake). Until when it waits
     * for the others after set_leave() (INT64_MAX: it was not called). */
    int64_t asleep_until_ns, leave_until_ns;
    bool looks;    /* it looks again at once, so nobody needs to wake it; under `lock` */
    int left_rank; /* a global rank whose process has ended; -1: none */
    int64_t left_until_ns;
    /* Only the thread uses these. */
    bool ended, closed, over;
    int64_t end_ns; /* when it stops waiting for others; INT64_MAX: not yet */
};

struct process_set *set_create(const struct set_maker *maker, int32_t id, const int *ranks,
                               int count);

/* Opens the set on its members: takes the communicators, one for each lane of the engine, opens the
 * channel, starts the threads. */
enum hvd_status set_start(struct process_set *set, struct engine_comm **comms, struct error *err);

/* Waits for the threads, which must end: see set_leave(). */
void set_stop(struct process_set *set);

/* Sets live as long as somebody holds them. */
struct process_set *set_hold(struct process_set *set);
void set_release(struct process_set *set); /* accepts NULL */
static inline void set_release_at(struct process_set **set)
{
    set_release(*set);
}
#define AUTO_SET __attribute__((cleanup(set_release_at)))

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
