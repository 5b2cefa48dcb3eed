/* SPDX-License-Identifier: Apache-2.0 */
#include "node/activity.h"

#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/hash.h"
#include "node/usage.h"

#define PATIENT_MS 10000 /* who waits for so long and wakes at once has got something */

/* A time-out in milliseconds as the kernel shows it: a register, of which 32 bits count. */
static bool is_patient(uint64_t argument)
{
    int32_t ms = (int32_t)(uint32_t)argument;
    return ms < 0 || ms >= PATIENT_MS;
}

/* A wait that ends when data comes, and not because of a short time-out. */
static bool receives(const struct proc_call *call)
{
    switch (call->number) {
    case SYS_read:
    case SYS_readv:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_accept:
    case SYS_accept4: return true;
#ifdef SYS_poll
    case SYS_poll: return is_patient(call->arguments[2]);
#endif
#ifdef SYS_epoll_wait
    case SYS_epoll_wait:
#endif
    case SYS_epoll_pwait: return is_patient(call->arguments[3]);
    case SYS_ppoll: return call->arguments[2] == 0;
#ifdef SYS_select
    case SYS_select:
#endif
    case SYS_pselect6: return call->arguments[4] == 0;
    default: return false;
    }
}

static void add_main_thread(pid_t pid, bool closer, struct buf *scratch, struct activity *out)
{
    struct proc_call call;
    uint64_t waits = process_waits_read(pid, scratch);
    out->waits += waits;
    out->main_ns += process_run_ns_read(pid, scratch);
    if (!closer || !process_call_read(pid, scratch, &call) || !receives(&call))
        return;
    out->receivers = hash_add(out->receivers != 0 ? out->receivers : HASH_START, &pid, sizeof(pid));
    out->receptions += waits;
}

static bool add_process(pid_t pid, bool closer, struct buf *scratch, struct activity *out)
{
    static const uint64_t us_in_s = 1000000;
    struct process_usage found;
    if (!process_usage_read(pid, scratch, &found))
        return false;
    out->cpu_us += found.stat.cpu_ticks * us_in_s / (uint64_t)sysconf(_SC_CLK_TCK);
    out->faults += found.stat.faults;
    out->debugged = out->debugged || found.stat.state == 't';
    if (found.has_io)
        out->io_bytes += found.io.read_bytes + found.io.written_bytes;
    add_main_thread(pid, closer, scratch, out);
    return true;
}

bool activity_read(const struct descendants_table *processes, pid_t pid, bool closer,
                   struct activity *out)
{
    AUTO_BUF struct buf scratch = BUF_INIT(USAGE_TEXT_MAX);
    pid_t *below = NULL;
    *out = (struct activity){.cpu_us = 0};
    if (!add_process(pid, closer, &scratch, out))
        return false;
    size_t count = descendants_in(processes, pid, &below);
    for (size_t i = 0; i < count && i + 1 < ACTIVITY_PROCESSES_MAX; i++)
        add_process(below[i], closer, &scratch, out);
    free(below);
    return true;
}
