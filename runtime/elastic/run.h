/* SPDX-License-Identifier: Apache-2.0 */
/* A program that goes on when ranks are lost or come: its state, and the run through the epochs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "include/hvd.h"

/*
 * The state of an elastic program: memory of the program that is saved at each commit, and restored
 * when a rank was lost. Pure.
 *
 * The age says which rank has the best state. A rank that has never shared the state of the others
 * has age 0, and each commit adds 1. All ranks that have the same commit have the same age, since
 * the age is shared with the state.
 */
#define ELASTIC_NAME_MAX 255 /* bytes of an entry's name */

struct elastic_entry {
    char *name;   /* owned */
    void *memory; /* the program's */
    void *saved;  /* owned */
    size_t bytes;
};

struct elastic_state {
    struct elastic_entry *entries;
    size_t count;
    int64_t age;
    int64_t saved_age; /* -1: nothing was saved */
};

void elastic_state_init(struct elastic_state *state);
void elastic_state_destroy(struct elastic_state *state); /* accepts an all-zero struct */

/* `memory` must stay where it is until the state is destroyed. -1: the name is empty, too long or
 * already there, something was saved already, or there is not enough memory. */
int elastic_state_add(struct elastic_state *state, const char *name, void *memory, size_t bytes,
                      struct error *err);

void elastic_state_save(struct elastic_state *state);    /* copies all memory, and the age */
void elastic_state_commit(struct elastic_state *state);  /* age + 1, and saved */
void elastic_state_restore(struct elastic_state *state); /* nothing if nothing was saved */

/* A hash of all names and sizes, in their order: ranks with different entries have different ones.
 * Never negative. */
int64_t elastic_state_layout(const struct elastic_state *state);

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
 *
 * The world is open, and is so afterwards, unless open() failed. `rejoins`: the launcher gives the
 * ranks of the next epoch; if it does not, errors end the run.
 */
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
