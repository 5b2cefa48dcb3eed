/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Do ranks wait in MPI? Pure. The first part is certain about one look at a rank. The second part
 * finds out of all ranks whether they seem to wait, which is good for a warning only, or surely do.
 *
 * A rank seems to wait if looks one after another find it in the same call that waits for others,
 * and it writes nothing. It must be there by the same way through the program. If it cannot be seen
 * whether calls return, such looks cannot tell that from a rank that makes the same call again and
 * again.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "stacks/stack.h"

#define MPI_WAIT_LOOKS 6             /* so many are worth a warning */
#define MPI_WAIT_SURE_LOOKS 32       /* so many that are certain end the job */
#define MPI_WAIT_DATA_BYTES 4096     /* between two looks; one who waits has less to say */
#define MPI_WAIT_PERIOD_MS 2000      /* between two looks */
#define MPI_WAIT_PERIOD_MAX_MS 60000 /* while ranks are elsewhere */

/*
 * A rank waits in MPI for certain if all threads of all its processes are in calls of MPI whose
 * numbers are known (struct stack). Threads that the MPI library has started for itself do not
 * count. A process may also wait for its own child, as a shell does that has started the program.
 * In doubt, the rank does not wait: it may work, and a job that works is never ended.
 */

struct mpi_calls { /* of one look at a rank; begin with zeros */
    uint64_t place;
    bool whole;  /* all threads of all its processes were read: the caller's to set */
    bool unsure; /* one of them is elsewhere, or copies data */
};

void mpi_calls_add(struct mpi_calls *calls, const struct stack *stack);

/* Stands for the numbers of all its calls: if two looks have the same one, none of them has
 * returned between the two. 0: it may not wait. */
uint64_t mpi_calls_place(const struct mpi_calls *calls);

struct mpi_wait_rank {
    bool runs;
    uint64_t place;      /* of its main thread, or of child processes; 0: not in MPI */
    bool works;          /* another thread runs, and not in a library below MPI; or it is stopped */
    uint64_t output;     /* bytes */
    uint64_t data_bytes; /* that it has read and written, over TCP too */
    uint64_t run_ns;     /* for which it has used processors */
    bool spins;          /* a thread runs: it gets a processor, or nothing can be said of it */
    bool meets;          /* it connects with another job */
    const char *doubt;   /* why it may go on, besides what its threads show; borrowed. NULL */
    struct mpi_calls calls;
    const char *unsure; /* why a thread of it may not wait; static. NULL */
    bool elsewhere;     /* one of them surely does not */
    const char *call;   /* "MPI_Barrier", of one of its threads; NULL: none. Of the stack. */
};

/* Adds a stack of the rank. */
void mpi_wait_add(struct mpi_wait_rank *rank, const struct stack *stack);

/* A number for the call of MPI in which a stack is, and for the way there; 0: it is in none. */
uint64_t mpi_wait_place(const struct stack *stack);

/* Compares a look with the one before, which found the same for `looks` looks. Returns that number
 * for the new one. 0: no rank runs, or one of them is not in MPI. */
int mpi_wait_looks(const struct mpi_wait_rank *before, const struct mpi_wait_rank *now, int count,
                   int looks);

/* The same for certain, of whole looks. One that has missed a thread of a rank shows what the look
 * before did, and does not count. Nor does one of a thread that runs, but gets no processor. It
 * says 0 if another thread of the rank is elsewhere. Waits for more than ranks, such as for a file,
 * are elsewhere too. Data that a rank reads or writes may be those of its call. */
int mpi_wait_sure_looks(const struct mpi_wait_rank *before, struct mpi_wait_rank *now, int count,
                        int looks);
/* Why rank *rank, the first one for which there is a reason, may not wait. NULL: all of them do. */
const char *mpi_wait_doubt(const struct mpi_wait_rank *ranks, int count, int *rank);
/* For how long they have surely waited: a call may have begun after the first look at it. */
int64_t mpi_wait_sure_ms(int looks);

/* Appends "ranks 0,2 in MPI_Barrier, rank 3 in MPI_Recv". */
void mpi_wait_text(const struct mpi_wait_rank *ranks, int count, struct buf *out);

int64_t mpi_wait_next_ms(int looks, int64_t period_ms); /* when to look again, after `period_ms` */
