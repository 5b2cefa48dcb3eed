/* SPDX-License-Identifier: Apache-2.0 */
/* What a session starts on this node: a debugger, a shell, or a command. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/strv.h"
#include "wire/control.pb-c.h"

struct session_worker { /* that it is about */
    pid_t pid;          /* 0: none */
    bool is_stopped;
};

struct session_program {
    char *path, *wdir; /* wdir NULL: where the agent is */
    struct strv argv, env;
};

/* -1: it cannot be started here, with the reason for the user. Destroy `out` in either case. */
int session_program_make(const Hvdrun__SessionRequest *request, const struct session_worker *worker,
                         struct session_program *out, struct error *err);
void session_program_destroy(struct session_program *program);

/* Appends the command line of a debugger that attaches to a process. Pure. `with`: "gdb", "lldb",
 * or a command for /bin/sh, in which {pid} is the number of the process. If that is stopped by
 * SIGSTOP, gdb then has one left over. The first word is to be looked for in PATH. */
void debug_line(const char *with, pid_t pid, bool is_stopped, struct strv *out);
