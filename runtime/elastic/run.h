/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a function of the program again and again, until it ends for another reason than a change
 * of the ranks.
 *
 *   what happened                          what follows
 *   the function returned HVD_OK           return HVD_OK
 *   ... HVD_ERR_HOSTS_CHANGED              the next epoch, sync, the function
 *   ... an error of a lost connection      restore, the next epoch, sync, the function
 *   ... another value                      return it
 *   sync or open failed as above           the same as if the function had
 *   open: HVD_ERR_REMOVED                  return it
 *
 * Errors of a lost connection are HVD_ERR_PEER_LOST, HVD_ERR_SHUT_DOWN, HVD_ERR_TIMEOUT and
 * HVD_ERR_ENGINE.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "elastic/state.h"
#include "include/hvd.h"

/*
 * What the elastic part needs of the library: a table of functions, so that tests can provide
 * others. All are collective, block, and return an hvd_status; `err` gets the text of an error.
 */
struct elastic_world {
    /* Connects to the ranks of the present epoch, after close() to those of the next one.
     * HVD_ERR_REMOVED: the job goes on without this rank. */
    int (*open)(void *context, struct error *err);
    void (*close)(void *context);
    int (*rank)(void *context);
    /* `*value` becomes the greatest of all ranks. */
    int (*max)(void *context, const char *name, int64_t *value, struct error *err);
    int (*broadcast)(void *context, const char *name, void *memory, size_t bytes, int root,
                     struct error *err);
    /* Not collective: whether the launcher has said since the last call that hosts have joined or
     * left. */
    bool (*hosts_changed)(void *context);
    void *context;
};

/* The world is open, and is so afterwards, unless open() failed. `rejoins`: the launcher gives the
 * ranks of the next epoch; if it does not, errors end the run. */
int elastic_run(struct elastic_state *state, const struct elastic_world *world, bool rejoins,
                int (*function)(void *context), void *context, struct error *err);

/* This and the next are collective: every rank of the job must call them at the same place.
 *
 * All ranks get the memory and the age of the rank with the greatest age. If several have it, the
 * lowest rank gives. So a new rank, whose age is 0, gets the state of a survivor. Then the state is
 * saved. HVD_ERR_MISMATCH: the states of the ranks have different entries, and nothing has changed.
 * After another error the memory may be a mixture: restore it. */
int elastic_sync(struct elastic_state *state, const struct elastic_world *world, struct error *err);

/* HVD_ERR_HOSTS_CHANGED: rank 0 knows that hosts have joined or left; all ranks return it. */
int elastic_check(const struct elastic_world *world, struct error *err);
