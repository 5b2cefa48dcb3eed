/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of a debugger that attaches to a process. Pure. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/strv.h"

/* `with`: "gdb", "lldb", or a command for /bin/sh, in which {pid} is the number of the process. If
 * that is stopped by SIGSTOP, gdb then has one left over. The words are appended; the first one is
 * to be looked for in PATH. */
void debug_line(const char *with, pid_t pid, bool is_stopped, struct strv *out);
