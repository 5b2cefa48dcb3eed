/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Do all ranks that run wait in MPI? Pure.
 *
 * A rank waits if looks one after another find it in the same call of MPI, and it writes nothing.
 * That is certain if the agents see whether calls return (LOOK_CALLS). Otherwise the rank must be
 * in a call that waits for others, by the same way through the program. Such looks cannot tell that
 * from a rank that makes the same call again and again. A rank that copies data in the call works.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "stacks/stack.h"

#define MPI_WAIT_LOOKS 6             /* so many are worth a warning */
#define MPI_WAIT_PERIOD_MS 2000      /* between two looks */
#define MPI_WAIT_PERIOD_MAX_MS 60000 /* while ranks are elsewhere */

struct mpi_wait_rank {
    bool runs;
    uint64_t place;  /* of its main thread, or of child processes; 0: not in MPI */
    bool unsure;     /* it may have come back from a call that looks the same */
    bool works;      /* another thread runs, and not in a library below MPI; or it is stopped */
    uint64_t output; /* bytes */
};

/* All that run are surely in the same calls as in the look before, if mpi_wait_looks() says so. */
bool mpi_wait_is_sure(const struct mpi_wait_rank *now, int count);

/* Adds a stack of the rank. `any_call`: all calls of MPI count, if their numbers are known.
 * Otherwise, those that wait for other ranks. */
void mpi_wait_add(struct mpi_wait_rank *rank, const struct stack *stack, bool any_call);

/* A number for the call of MPI in which a stack is, and for the way there; 0: it is in none. */
uint64_t mpi_wait_place(const struct stack *stack);

/* Compares a look with the one before, which found the same for `looks` looks. Returns that number
 * for the new one. 0: no rank runs, or one of them is not in MPI. */
int mpi_wait_looks(const struct mpi_wait_rank *before, const struct mpi_wait_rank *now, int count,
                   int looks);

int64_t mpi_wait_next_ms(int looks, int64_t period_ms); /* when to look again, after `period_ms` */
