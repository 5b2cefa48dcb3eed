/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the interpreter in a process: the address of _PyRuntime, and the version. It looks in the
 * program, and in libraries and programs whose names begin with "libpython" and "python". The files
 * can be in a container, or deleted: it opens them through /proc.
 */
#pragma once

#include <sys/types.h>

#include "stacks/memory.h"

/* What it has read of ELF files, for other processes of the same program. Not for several threads.
 */
struct runtime_files;

struct runtime_files *runtime_files_create(void);
void runtime_files_destroy(struct runtime_files *files); /* accepts NULL */

struct runtime {
    uint64_t address; /* of _PyRuntime */
    int minor;        /* of Python 3; -1: unknown */
};

/* 1: found. 0: that process is not Python, or has ended. */
int runtime_find(struct runtime_files *files, pid_t pid, struct memory *memory,
                 struct runtime *out);
