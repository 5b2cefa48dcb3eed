/* SPDX-License-Identifier: Apache-2.0 */
#include "node/usage.h"

#include <dirent.h>
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/map.h"
#include "base/mem.h"
#include "io/proc.h"
#include "node/descendants.h"

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

/* How often its main thread gave up the processor to wait; 0: the process is gone. */
static uint64_t process_waits_read(pid_t pid, struct buf *scratch)
{
    uint64_t waits = 0;
    const char *status = read_of(pid, "status", scratch);
    return status != NULL && proc_waits_read(status, &waits) == 0 ? waits : 0;
}

/* For how long its main thread has used the processor; 0: unknown. */
static uint64_t process_run_ns_read(pid_t pid, struct buf *scratch)
{
    uint64_t ns = 0;
    const char *text = read_of(pid, "schedstat", scratch);
    return text != NULL && proc_run_ns_read(text, &ns) == 0 ? ns : 0;
}

/* The system call in which its main thread waits. false: it runs, or that cannot be read. */
static bool process_call_read(pid_t pid, struct buf *scratch, struct proc_call *out)
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

/* Of a process and all below it. */

#define ACTIVITY_PROCESSES_MAX 256

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

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif

/* Of a file that may not be there any more. */
static bool add_file(int process, int folder, const char *name, uint64_t *bytes)
{
    char what[8] = "";
    if (readlinkat(folder, name, what, sizeof(what)) != (ssize_t)sizeof(what) ||
        memcmp(what, "socket:[", sizeof(what)) != 0)
        return true;
    int copy AUTO_FD = (int)syscall(SYS_pidfd_getfd, process, (int)strtol(name, NULL, 10), 0);
    struct tcp_info info = {.tcpi_state = 0};
    socklen_t length = sizeof(info);
    if (copy >= 0 && getsockopt(copy, IPPROTO_TCP, TCP_INFO, &info, &length) == 0)
        *bytes += info.tcpi_bytes_received + info.tcpi_bytes_acked;
    return copy >= 0 || errno == EBADF;
}

static bool add_files(pid_t pid, size_t *files, uint64_t *bytes)
{
    char path[32];
    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    int process AUTO_FD = (int)syscall(SYS_pidfd_open, pid, 0);
    DIR *folder = opendir(path);
    bool known = process >= 0 && folder != NULL;
    const struct dirent *entry = known ? readdir(folder) : NULL;
    for (; known && entry != NULL; entry = readdir(folder)) {
        known = *files > 0 && add_file(process, dirfd(folder), entry->d_name, bytes);
        *files -= known;
    }
    if (folder != NULL)
        closedir(folder);
    return known;
}

bool tcp_bytes_read(const struct descendants_table *processes, pid_t pid, size_t *files,
                    uint64_t *bytes)
{
    pid_t *below AUTO_FREE = NULL;
    *bytes = 0;
    bool known = add_files(pid, files, bytes);
    size_t count = descendants_in(processes, pid, &below);
    for (size_t i = 0; i < count && known; i++)
        known = add_files(below[i], files, bytes);
    return known;
}
