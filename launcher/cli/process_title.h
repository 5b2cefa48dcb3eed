/* SPDX-License-Identifier: Apache-2.0 */
/* The command line that ps shows for a process that was forked without exec. */
#pragma once

#include <stddef.h>

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
