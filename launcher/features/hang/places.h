/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the ranks of a job are, and where their stacks part. Pure.
 *
 * The main threads are compared from their outer end on. Where they part, the ranks go on that are
 * more than a half of all, and the others are at another place. Those that go on may part again, in
 * code of the program's own, as long as few ranks leave them. So a master and the one worker that
 * is stuck are both found. How the ranks part inside of a library says nothing: many wait in loops.
 * So a native stack ends where it calls MPI, and without its frames of the C library. A stack that
 * could not be read to its outer end is at an unknown place.
 *
 * A main thread may wait for a thread or a child process of its own. Then the place of that one
 * belongs to the rank's place, if most other ranks have none there. Without frames, a place is the
 * system call.
 */
#pragma once

#include <stdint.h>

#include "features/hang/place_frame.h"
#include "stacks/stack.h"

struct program_place {
    uint64_t key;       /* ranks at one place have the same; 0: unknown */
    const char *where;  /* "train.py:6 read_batch"; NULL: unknown */
    const char *shared; /* the same of all ranks at that place; NULL: unknown */
    bool calls;         /* both say what it does: "calls openat" */
    bool mpi;           /* `where` is a call of MPI */
    enum torch_call call;
    const char *held; /* "stopped (SIGSTOP)": the rank cannot go on; NULL */
    bool held_below;  /* that is a child process of it */
};

struct places;

struct places *places_create(void);
void places_destroy(struct places *places); /* accepts NULL */

/* One stack of stack->rank. Its texts are borrowed, its frames are copied. */
void places_add(struct places *places, const struct stack *stack);
/* Once, when all are there. */
void places_find(struct places *places);

/* The ranks of which a stack was added, in that order. */
size_t places_count(const struct places *places);
int places_rank(const struct places *places, size_t number);

/* NULL: no stack of this rank was added. Borrowed. */
const struct program_place *places_of(const struct places *places, int rank);

/* One rank, or a quarter at most, and there are others. */
bool places_are_few(size_t count, size_t all);
