/* SPDX-License-Identifier: Apache-2.0 */
#include "node/usage.h"

#include <dirent.h>
#include <errno.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/map.h"
#include "base/mem.h"
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

/* All of it: nothing of it can be seen any more, and nothing comes of it. */
static bool has_ended(const struct proc_stat *stat)
{
    return stat->state == 'X' || (stat->state == 'Z' && stat->threads <= 1);
}

static void add_main_thread(pid_t pid, bool closer, struct buf *scratch, struct activity *out)
{
    struct proc_call call;
    uint64_t waits = 0, ns = 0; /* they stay 0 if the process is gone, or the kernel does not say */
    const char *text = read_of(pid, "status", scratch);
    if (text != NULL)
        (void)proc_waits_read(text, &waits);
    text = read_of(pid, "schedstat", scratch);
    if (text != NULL)
        (void)proc_run_ns_read(text, &ns);
    out->waits += waits;
    out->main_ns += ns;
    text = closer ? read_of(pid, "syscall", scratch) : NULL;
    if (text == NULL || proc_call_read(text, &call) < 0 || !receives(&call))
        return;
    out->receivers = hash_add(out->receivers != 0 ? out->receivers : HASH_START, &pid, sizeof(pid));
    out->receptions += waits;
}

#define SIGNAL_BIT(number) ((uint64_t)1 << ((number)-1))

/* A rank may go on from a function that its own timer calls. NULL: it has none. */
static const char *timer_of(pid_t pid, struct buf *scratch)
{
    uint64_t caught = 0;
    const char *text = read_of(pid, "status", scratch);
    if (text == NULL || proc_caught_read(text, &caught) < 0)
        return "its signals cannot be seen";
    if ((caught & (SIGNAL_BIT(SIGALRM) | SIGNAL_BIT(SIGVTALRM) | SIGNAL_BIT(SIGPROF))) != 0)
        return "it takes signals of timers (SIGALRM, SIGVTALRM or SIGPROF)";
    text = read_of(pid, "timers", scratch); /* an older kernel has no such file */
    return text != NULL && text[0] != '\0' ? "it has a timer of its own" : NULL;
}

static const char *doubt_of(pid_t pid, const struct process_usage *found, struct buf *scratch)
{
    if (!found->has_io)
        return "it cannot be seen what it reads and writes";
    return found->stat.state == 'D' ? "it waits for memory or a file" : timer_of(pid, scratch);
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
    if (closer && out->doubt == NULL && !has_ended(&found.stat))
        out->doubt = doubt_of(pid, &found, scratch);
    if (found.has_io)
        out->io_bytes += found.io.read_bytes + found.io.written_bytes;
    add_main_thread(pid, closer, scratch, out);
    return true;
}

bool activity_read(const struct descendants_table *processes, pid_t pid, bool closer,
                   struct activity *out)
{
    AUTO_BUF struct buf scratch = BUF_INIT(USAGE_TEXT_MAX);
    pid_t *below AUTO_FREE = NULL;
    *out = (struct activity){.cpu_us = 0};
    if (!add_process(pid, closer, &scratch, out))
        return false;
    size_t count = descendants_in(processes, pid, &below);
    for (size_t i = 0; i < count && i + 1 < ACTIVITY_PROCESSES_MAX; i++)
        if (!add_process(below[i], closer, &scratch, out))
            out->doubt = "a process of it has just ended";
    if (count >= ACTIVITY_PROCESSES_MAX)
        out->doubt = "it has too many processes";
    return true;
}

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif

#define UNSEEN "its connections cannot be seen"
#define TOO_MANY "the ranks of its host have too many open files"

/* Data on the way, or the first words of a connection, may come however long nothing moves. */
static const char *add_connection(int copy, struct tcp_bytes *bytes)
{
    struct tcp_info info = {.tcpi_state = 0};
    socklen_t length = sizeof(info);
    int unread = 0;
    if (getsockopt(copy, IPPROTO_TCP, TCP_INFO, &info, &length) < 0)
        return NULL;
    uint64_t words = (uint64_t)info.tcpi_data_segs_in * 512; /* heartbeats, and what is like them */
    bytes->all += info.tcpi_bytes_received + info.tcpi_bytes_acked;
    bytes->data += info.tcpi_bytes_received > words ? info.tcpi_bytes_received - words : 0;
    bool flows = info.tcpi_unacked > 0 || info.tcpi_notsent_bytes > 0 ||
                 (ioctl(copy, SIOCINQ, &unread) == 0 && unread > 0);
    return flows ? "its connections hold data that has not been read or has not arrived" : NULL;
}

static const char *unseen(struct tcp_bytes *bytes, const char *why)
{
    bytes->partial = true;
    return why;
}

/* Of a file that may not be there any more. */
static const char *add_file(int process, int folder, const char *name, struct tcp_bytes *bytes)
{
    char what[8] = "";
    ssize_t length = readlinkat(folder, name, what, sizeof(what));
    if (length < 0 && errno != ENOENT && name[0] != '.')
        return unseen(bytes, UNSEEN);
    if (length != (ssize_t)sizeof(what) || memcmp(what, "socket:[", sizeof(what)) != 0)
        return NULL;
    int copy AUTO_FD = (int)syscall(SYS_pidfd_getfd, process, (int)strtol(name, NULL, 10), 0);
    if (copy < 0)
        return errno == EBADF ? NULL : unseen(bytes, UNSEEN);
    return add_connection(copy, bytes);
}

static const char *add_files(pid_t pid, size_t *files, struct tcp_bytes *bytes)
{
    char path[32];
    struct proc_stat stat;
    if (proc_read_stat(pid, 0, &stat) == 0 && has_ended(&stat))
        return NULL;
    if (*files == 0)
        return unseen(bytes, TOO_MANY);
    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    int process AUTO_FD = (int)syscall(SYS_pidfd_open, pid, 0);
    DIR *folder = opendir(path);
    const char *doubt = process >= 0 && folder != NULL ? NULL : unseen(bytes, UNSEEN);
    errno = 0;
    const struct dirent *entry = doubt == NULL ? readdir(folder) : NULL;
    for (; entry != NULL && *files > 0; entry = readdir(folder), --*files) {
        const char *why = add_file(process, dirfd(folder), entry->d_name, bytes);
        doubt = doubt != NULL ? doubt : why;
        errno = 0;
    }
    if (entry != NULL)
        doubt = unseen(bytes, TOO_MANY);
    else if (folder != NULL && errno != 0)
        doubt = unseen(bytes, UNSEEN);
    if (folder != NULL)
        closedir(folder);
    return doubt;
}

const char *tcp_bytes_read(const struct descendants_table *processes, pid_t pid, size_t *files,
                           struct tcp_bytes *bytes)
{
    pid_t *below AUTO_FREE = NULL;
    *bytes = (struct tcp_bytes){.all = 0};
    const char *doubt = add_files(pid, files, bytes);
    size_t count = descendants_in(processes, pid, &below);
    for (size_t i = 0; i < count; i++) {
        const char *why = add_files(below[i], files, bytes);
        doubt = doubt != NULL ? doubt : why;
    }
    bytes->data = bytes->partial ? 0 : bytes->data;
    return doubt;
}
