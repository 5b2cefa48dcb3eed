/* SPDX-License-Identifier: Apache-2.0 */
/* Forks of hvdrun without exec: the command line that ps shows for them, and --detach. */
#pragma once

#include <stddef.h>

#include "base/error.h"

/* The memory of argv and of the environment, which the kernel laid out one after the other. */
struct process_title {
    char *area;
    size_t room;        /* bytes, as far as they are contiguous */
    char **environment; /* the copy: setenv() may put another list into `environ` */
};

/* Measures the area. It writes nothing. argv and envp are those of main(), NULL-ended. */
struct process_title process_title_of(char *const *argv, char *const *envp);

/* Writes `text` over the area, as much as fits. Before, it copies the environment to the heap:
 * afterwards `environ` works as before, but the strings of argv, and results of an earlier
 * getenv(), do not. So call it only in a process that does not read these any more. The copy stays
 * until the process ends. */
void process_title_set(struct process_title *title, const char *text);

/*
 * --detach: the job runs in a child with a session of its own. The parent waits until all ranks
 * run, prints the id of the job, and ends. A signal that it gets until then goes to the child.
 * Errors of the start appear as always, because the child keeps standard error until then.
 */
enum detach_side { DETACH_FAILED = -1, DETACH_CHILD, DETACH_PARENT };

/* Forks. Call it before any other process is started. In the child, `*started_fd` takes the id. In
 * the parent, it returns after the start, with the exit status in `*status`. */
enum detach_side detach_fork(int *started_fd, int *status, struct error *err);
