/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does a rank wait in MPI, for certain? Pure.
 *
 * It does if all threads of all its processes are in calls of MPI whose numbers are known (struct
 * stack). Threads that the MPI library has started for itself do not count. A process may also wait
 * for its own child, as a shell does that has started the program. In doubt, the rank does not
 * wait: it may work, and a job that works is never ended.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "stacks/stack.h"

struct mpi_calls { /* of one look at a rank; begin with zeros */
    uint64_t place;
    bool whole;  /* all threads of all its processes were read: the caller's to set */
    bool unsure; /* one of them is elsewhere, or copies data */
};

void mpi_calls_add(struct mpi_calls *calls, const struct stack *stack);

/* Stands for the numbers of all its calls: if two looks have the same one, none of them has
 * returned between the two. 0: it may not wait. */
uint64_t mpi_calls_place(const struct mpi_calls *calls);
