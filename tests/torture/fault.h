/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which call of hvdrun is to fail. The library is preloaded into all processes of a run, and does
 * nothing in those that are not hvdrun's own.
 *
 *   TORTURE=KIND:ROLE:K:MODE   the K-th call that could fail with KIND fails. ROLE: driver, agent,
 *                              keeper or all. MODE: once, or on (all from the K-th on). K 0: none.
 *   TORTURE_FOLDER=PATH        `count`: how many calls there were; `failed`: one line for each that
 *                              was made to fail, with where it stands; with K 0, for each that
 * could
 *
 * Counted are the calls that hvdrun's own code makes, libraries linked statically and libc
 * included, not those of other shared libraries.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define FAULT_LIST(X)                                                   \
    X(ALLOC, "alloc", ENOMEM) /* of memory, by malloc() and the like */ \
    X(INTR, "intr", EINTR)                                              \
    X(AGAIN, "again", EAGAIN) /* of a descriptor that does not block */ \
    X(SHORT, "short", 0)      /* one byte is read or written */         \
    X(NOMEM, "nomem", ENOMEM) /* of the kernel's memory */              \
    X(MFILE, "mfile", EMFILE)                                           \
    X(NPROC, "nproc", EAGAIN) /* no more processes or threads */        \
    X(NOSPC, "nospc", ENOSPC)                                           \
    X(PIPE, "pipe", EPIPE)                                              \
    X(IO, "io", EIO)                                                    \
    X(PERM, "perm", EPERM) /* what a sandbox may refuse */

enum fault_number {
#define FAULT_NUMBER(name, word, errnum) FAULT_NUMBER_##name,
    FAULT_LIST(FAULT_NUMBER)
#undef FAULT_NUMBER
};

/* Kinds, to be combined. */
enum fault {
#define FAULT_BIT(name, word, errnum) FAULT_##name = 1 << FAULT_NUMBER_##name,
    FAULT_LIST(FAULT_BIT)
#undef FAULT_BIT
};

/* Whether this call, which could fail with any of `kinds`, is to fail: then errno is set. */
int fault_now(const char *call, unsigned kinds);

/* The kinds of a transfer of `length` bytes through `fd`. */
unsigned fault_read_kinds(int fd, size_t length);
unsigned fault_write_kinds(int fd, size_t length);
int fault_is_short(void); /* what fails is to be a part of the transfer, not all of it */

/* Whether calls of this thread do not count from now on; returns what it was. */
bool fault_pause(bool pause);

void fault_forked(void); /* in the new process: the driver's child is an agent, the keeper's too */

void *fault_real(const char *name); /* the libc's own function */
