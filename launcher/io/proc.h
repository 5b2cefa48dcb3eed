/* SPDX-License-Identifier: Apache-2.0 */
/* The files of /proc about a process, or about one of its threads. A `tid` of 0 means the process.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"
#include "model/usage/proc_text.h"

/* A file becomes the content of `out`. False: it cannot be read, or does not fit. `out` then has
 * what was read. */
bool proc_read(pid_t pid, pid_t tid, const char *file, struct buf *out);

/* -1: there is no such process or thread. */
int proc_read_stat(pid_t pid, pid_t tid, struct proc_stat *out);

/* The value of a variable in the text of "environ"; NULL: none. Borrowed. */
const char *proc_variable(const struct buf *environment, const char *name);

/* The threads of a process, in a new array: at most `max`. 0: there is no such process. */
size_t proc_threads(pid_t pid, size_t max, pid_t **out);
