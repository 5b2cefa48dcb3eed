/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process and all processes below it have done since their start, as the kernel counts it.
 * What children that have ended did is included as soon as their parent has waited for them.
 *
 * It costs four or five small reads for each process. The number of threads does not matter.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "node/descendants.h"

struct activity {
    uint64_t cpu_us;
    uint64_t io_bytes;   /* of read() and write() calls, but not of sockets' own calls */
    uint64_t faults;     /* of pages: new memory */
    uint64_t waits;      /* how often their main threads gave up the processor to wait */
    uint64_t main_ns;    /* for which these have used the processor; 0: the kernel does not say */
    uint64_t receivers;  /* names the main threads that wait for data until it comes; 0: none */
    uint64_t receptions; /* the `waits` of these */
    bool debugged;       /* a debugger holds one of them */
};

#define ACTIVITY_PROCESSES_MAX 256

/* At most ACTIVITY_PROCESSES_MAX processes count. `closer`: the receivers are wanted too. false:
 * there is no such process. */
bool activity_read(const struct descendants_table *processes, pid_t pid, bool closer,
                   struct activity *out);
