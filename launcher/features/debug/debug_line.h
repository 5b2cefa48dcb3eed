/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of a debugger that attaches to a process. Pure. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/strv.h"

struct debug_target {
    pid_t pid;
    const char *program; /* the file that it runs, or "" */
    bool has_script;     /* beside that is `PROGRAM-gdb.py`, as for CPython's frames: gdb loads it
                            only if it is told to trust it */
    bool is_stopped;     /* by SIGSTOP, of which gdb then has one left over */
};

/* `with`: "gdb", "lldb", or a command for /bin/sh, in which {pid} and %p are the number of the
 * process. The words are appended; the first one is to be looked for in PATH. */
void debug_line(const char *with, const struct debug_target *target, struct strv *out);
