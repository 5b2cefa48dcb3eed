/* SPDX-License-Identifier: Apache-2.0 */
/* What a process and this machine use now, as the kernel says it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "model/usage/proc_text.h"
#include "node/descendants.h"

#define USAGE_TEXT_MAX ((size_t)1 << 16) /* of a file of /proc */

struct process_usage {
    struct proc_stat stat;
    bool has_io; /* the kernel tells it only to those who may trace the process */
    struct proc_io io;
};

/* `scratch` is a buffer that the caller keeps for many calls. false: the process is gone. */
bool process_usage_read(pid_t pid, struct buf *scratch, struct process_usage *out);

enum host_resource { HOST_CPU, HOST_MEMORY, HOST_IO, HOST_RESOURCES };

struct host_usage {
    bool has_load, has_memory;
    double load; /* of the last minute */
    struct proc_memory memory;
    bool has_pressure[HOST_RESOURCES]; /* not with the kernel's option psi=0 */
    struct proc_pressure pressure[HOST_RESOURCES];
};

void host_usage_read(struct buf *scratch, struct host_usage *out);

/*
 * What a process and all processes below it have done since their start, as the kernel counts it.
 * What children that have ended did is included as soon as their parent has waited for them.
 *
 * It costs four or five small reads for each process. The number of threads does not matter.
 */
struct activity {
    uint64_t cpu_us;
    uint64_t io_bytes;   /* of read() and write() calls, but not of sockets' own calls */
    uint64_t faults;     /* of pages: new memory */
    uint64_t waits;      /* how often their main threads gave up the processor to wait */
    uint64_t main_ns;    /* for which these have used the processor; 0: the kernel does not say */
    uint64_t receivers;  /* names the main threads that wait for data until it comes; 0: none */
    uint64_t receptions; /* the `waits` of these */
    bool debugged;       /* a debugger holds one of them */
    const char *doubt;   /* why they may go on even if all that stays the same; static. NULL */
};

/* At most ACTIVITY_PROCESSES_MAX processes count. `closer`: receivers and doubts are wanted too.
 * false: there is no such process. */
bool activity_read(const struct descendants_table *processes, pid_t pid, bool closer,
                   struct activity *out);

struct tcp_bytes {
    uint64_t all;
    /* That came, beyond 512 for each segment, in the whole life of a connection. 0: not known. One
     * that mostly carries small messages, such as heartbeats, has none. It can become less. */
    uint64_t data;
    bool partial; /* there are files that it has not seen */
};

/* The bytes that TCP has brought to the same processes, and from them to others. It looks at
 * *files open files at most, and subtracts those that it saw. Returns NULL, or why more may come:
 * there were more files, data are on the way, or the kernel does not say it (before Linux 5.6). */
const char *tcp_bytes_read(const struct descendants_table *processes, pid_t pid, size_t *files,
                           struct tcp_bytes *bytes);
