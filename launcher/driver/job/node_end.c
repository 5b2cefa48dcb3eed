/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/job/node_end.h"

#include <signal.h>
#include <sys/wait.h>

#include "model/exit/record.h"
#include "model/exit/status_text.h"

/* The limits that a shell sets and that end a process with a signal of their own. */
static const char *limit_of(int signal)
{
    switch (signal) {
    case SIGXFSZ: return " (the limit of ulimit -f)";
    case SIGXCPU: return " (the limit of ulimit -t)";
    default: return "";
    }
}

void node_end_of_exit(int wait_status, struct buf *out)
{
    if (WIFSIGNALED(wait_status)) {
        buf_puts(out, "its agent was killed by ");
        exit_signal_name(WTERMSIG(wait_status), out);
        buf_puts(out, limit_of(WTERMSIG(wait_status)));
    } else if (WEXITSTATUS(wait_status) != 0) {
        buf_puts(out, "its agent ended with ");
        status_text(WEXITSTATUS(wait_status), out);
    }
}

void node_end_of_farewell(const Hvdrun__Farewell *message, int64_t stall_ms, struct buf *out)
{
    double silence = message->silence_ms / 1000.0;
    if (stall_ms > 0 && stall_ms >= message->silence_ms / 2)
        buf_printf(out,
                   "hvdrun itself stood still for %.1f s, and its agent there gave up after %.1f s "
                   "(--node-timeout)",
                   (double)stall_ms / 1000, silence);
    else
        buf_printf(out,
                   "its agent gave up, since it heard nothing from hvdrun for %.1f s "
                   "(--node-timeout)",
                   silence);
}
