/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process and all processes below it have done since their start, as the kernel counts it.
 * What children that have ended did is included as soon as their parent has waited for them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct activity {
    uint64_t cpu_us;
    uint64_t io_bytes; /* of read() and write() calls, but not of sockets' own calls */
    uint64_t faults;   /* of pages: new memory */
    uint64_t waits;    /* how often their main threads gave up the processor to wait */
    bool debugged;     /* a debugger holds one of them */
};

#define ACTIVITY_PROCESSES_MAX 256

/* At most ACTIVITY_PROCESSES_MAX processes count. false: there is no such process. */
bool activity_read(pid_t pid, struct activity *out);
