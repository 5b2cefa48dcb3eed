/* SPDX-License-Identifier: Apache-2.0 */
#include "node/usage.h"

#include "base/fd.h"
#include "io/proc.h"

/* The text, or NULL. Borrowed until the next call. */
static const char *read_text(const char *path, struct buf *scratch)
{
    buf_clear(scratch);
    return fd_read_file(path, scratch, NULL) == 0 ? buf_text(scratch) : NULL;
}

static const char *read_of(pid_t pid, const char *file, struct buf *scratch)
{
    return proc_read(pid, 0, file, scratch) ? buf_text(scratch) : NULL;
}

bool process_usage_read(pid_t pid, struct buf *scratch, struct process_usage *out)
{
    *out = (struct process_usage){.has_io = false};
    const char *stat = read_of(pid, "stat", scratch);
    if (stat == NULL || proc_stat_read(stat, &out->stat) < 0)
        return false;
    const char *io = read_of(pid, "io", scratch);
    out->has_io = io != NULL && proc_io_read(io, &out->io) == 0;
    return true;
}

uint64_t process_waits_read(pid_t pid, struct buf *scratch)
{
    uint64_t waits = 0;
    const char *status = read_of(pid, "status", scratch);
    return status != NULL && proc_waits_read(status, &waits) == 0 ? waits : 0;
}

uint64_t process_run_ns_read(pid_t pid, struct buf *scratch)
{
    uint64_t ns = 0;
    const char *text = read_of(pid, "schedstat", scratch);
    return text != NULL && proc_run_ns_read(text, &ns) == 0 ? ns : 0;
}

bool process_call_read(pid_t pid, struct buf *scratch, struct proc_call *out)
{
    const char *text = read_of(pid, "syscall", scratch);
    return text != NULL && proc_call_read(text, out) == 0;
}

void host_usage_read(struct buf *scratch, struct host_usage *out)
{
    static const char *const files[HOST_RESOURCES] = {[HOST_CPU] = "/proc/pressure/cpu",
                                                      [HOST_MEMORY] = "/proc/pressure/memory",
                                                      [HOST_IO] = "/proc/pressure/io"};
    *out = (struct host_usage){.has_load = false};
    const char *text = read_text("/proc/loadavg", scratch);
    out->has_load = text != NULL && proc_load_read(text, &out->load) == 0;
    text = read_text("/proc/meminfo", scratch);
    out->has_memory = text != NULL && proc_memory_read(text, &out->memory) == 0;
    for (int i = 0; i < HOST_RESOURCES; i++) {
        text = read_text(files[i], scratch);
        out->has_pressure[i] = text != NULL && proc_pressure_read(text, &out->pressure[i]) == 0;
    }
}
