/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes and removes the process sets of a job.
 *
 * A set begins on all ranks of the job, in the same order: the static sets in hvd_init(), others in
 * the thread of set 0. Its members make a communicator and a control channel, and start its thread.
 */
#pragma once

#include "engine/setup.h"
#include "loop/knobs.h"
#include "loop/sets.h"

struct set_maker {
    const struct engine *engine;
    struct engine_world *engine_world;
    const struct engine_place *place; /* borrowed, as all pointers */
    const struct engine_setup *setup;
    const struct knobs *knobs; /* those of the next set */
    const struct trace *trace;
    const struct set_owner *owner;
    int stop; /* see failure.h */
    struct sets *sets;
    /* Held while communicators are made or destroyed, as engine/engine.h demands. */
    pthread_mutex_t *comm_lock;
};

/* Makes set 0, which takes the communicator of all ranks. */
enum hvd_status set_maker_first(const struct set_maker *maker, struct engine_comm *comm,
                                struct error *err);
/* Makes a set that hvd_init() was given. */
enum hvd_status set_maker_static(const struct set_maker *maker, const struct hvd_ranks *wanted,
                                 struct error *err);
/* A request of set 0, in its thread. As `change` in set_owner.h. */
enum hvd_status set_maker_change(const struct set_maker *maker, const struct request *request,
                                 struct outcome *outcome, struct error *err);
/* Waits for the thread of a set, which must end, and destroys its communicator. */
void set_maker_end(const struct set_maker *maker, struct process_set *set);
