/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of an elastic program: memory of the program that is saved at each commit, and restored
 * when a rank was lost. Pure.
 *
 * The age says which rank has the best state. A rank that has never shared the state of the others
 * has age 0, and each commit adds 1. All ranks that have the same commit have the same age, since
 * the age is shared with the state.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

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
