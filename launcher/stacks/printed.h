/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What another process has printed with printf() and its like, and not yet written to its stdout.
 * The C library of a process that calls _exit(), as Open MPI's MPI_Abort does, would lose it. Only
 * for the stdout of glibc, in 64-bit little-endian programs. It needs the right to read the memory
 * of that process.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "stacks/memory.h"

#define PRINTED_MAX ((size_t)1 << 20) /* of a larger buffer nothing is taken */

/* Where the C library that is mapped first begins, by the text of /proc/PID/maps, and its path,
 * which the caller frees. NULL: there is none. */
char *printed_library(const char *maps, uint64_t *start);

/* `out` gets what is unwritten in the FILE at `file`. With *value stored at *at, the process does
 * not write it again. -1: nothing is unwritten, a thread uses the FILE, or it is not one of stdout.
 */
int printed_read(struct memory *memory, uint64_t file, struct buf *out, uint64_t *at,
                 uint64_t *value);

/* Writes to the stdout of a process, if it is a pipe or a terminal, what it has printed. What does
 * not fit there stays with the process. No thread of it should print meanwhile. */
void printed_flush(pid_t pid);
