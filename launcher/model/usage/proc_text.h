/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The texts of /proc that say what a process or a machine uses. Pure.
 *
 * The kernel writes most of these texts. But a process chooses its own name, which is inside its
 * `stat`, and some machines show texts of another program in their place (lxcfs). So any bytes may
 * come. A reader returns -1 if the text lacks something, and `out` is not changed then.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* /proc/PID/stat */
struct proc_stat {
    int64_t parent, session;
    uint64_t flags;       /* PF_... of the kernel */
    uint64_t cpu_ticks;   /* user and system, also of children that it has waited for */
    uint64_t start_ticks; /* with the pid, it names one process */
    uint64_t threads, resident_pages;
    uint64_t faults; /* of pages that were in memory, also of children that it has waited for */
    int64_t code;    /* its wait status if it ended; since Linux 5.17, the signal that stopped it */
    char state;
};
int proc_stat_read(const char *text, struct proc_stat *out);

/* /proc/PID/status: how often the thread gave up the processor to wait. */
int proc_waits_read(const char *text, uint64_t *out);

/* /proc/PID/status: the signals that have come, but nobody has taken; signal N is bit N - 1. */
int proc_pending_read(const char *text, uint64_t *out);
int proc_caught_read(const char *text, uint64_t *out); /* those for which it has a function */

/* /proc/PID/schedstat: for how many nanoseconds the thread has used the processor. */
int proc_run_ns_read(const char *text, uint64_t *out);

/* /proc/PID/syscall: the number of the system call in which the thread waits, and its arguments. */
#define PROC_CALL_ARGUMENTS 6
struct proc_call {
    uint64_t number, arguments[PROC_CALL_ARGUMENTS];
};
int proc_call_read(const char *text, struct proc_call *out); /* -1 also if it runs */

/* /proc/PID/io: bytes that went through system calls, also of children that it has waited for. */
struct proc_io {
    uint64_t read_bytes, written_bytes;
};
int proc_io_read(const char *text, struct proc_io *out);

/* A file of /proc/pressure: for how much of the time tasks waited for a resource. */
struct proc_pressure {
    double some_percent, full_percent; /* of the last 10 s; full: no task could go on */
    uint64_t some_us, full_us;         /* since the machine started */
};
/* A text without a line "full" (the CPU's, of an older kernel) has 0 there. */
int proc_pressure_read(const char *text, struct proc_pressure *out);

/* /proc/loadavg: the first of its numbers, for the last minute. */
int proc_load_read(const char *text, double *out);

/* A line of /proc/PID/maps, of a file:
 * "7f12-7f34 r-xp 00001000 103:02 4711   /usr/lib/libmpi.so.40.30.4". */
struct proc_mapping {
    uint64_t start, end, offset, inode;
    const char *rights; /* four letters; borrowed, as the path is */
    const char *path;   /* it can end with " (deleted)" */
    size_t length;      /* of the path */
};
/* The line is part of a text that ends with a zero. */
int proc_mapping_read(const char *line, size_t length, struct proc_mapping *out);

/* /proc/meminfo */
struct proc_memory {
    uint64_t total_bytes, available_bytes;
};
int proc_memory_read(const char *text, struct proc_memory *out);
