/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Python stacks of another process, which goes on meanwhile. It needs the right to read the
 * memory of that process (PTRACE_MODE_ATTACH). An ancestor with the same user has it, unless the
 * kernel is configured otherwise.
 *
 * A call can wait for the kernel, which may hold the process's memory map for other work. A thread
 * in mmap() on a file system that hangs is an example. So call it in a process that you can leave
 * behind.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "stacks/runtime.h"
#include "stacks/stack.h"
#include "stacks/tasks.h"

#define PROCESS_FRAMES_MAX 60 /* of one thread; the ones between the ends are left out */
#define PROCESS_THREADS_MAX 256

struct process_thread {
    pid_t tid;                  /* 0: unknown */
    char name[32];              /* "" when it is that of the process */
    bool main;                  /* the process's first thread */
    bool holds_gil;             /* it may use the interpreter now; all others wait */
    bool running;               /* it ran while it was read, or would if there was a processor */
    long call;                  /* the system call that it is in; -1: none, or unknown */
    uint64_t back;              /* native_call_back(); 0: it is in no call of MPI */
    bool helper;                /* native_call_is_helper() */
    uint64_t mpi_call;          /* as struct stack; the caller's to fill in */
    struct stack_frame *frames; /* the outermost first; none: it changes too fast to be read */
    size_t count;
};

struct process_stacks {
    int minor;     /* of Python 3 */
    char *trouble; /* NULL, or why there are no threads: "its memory cannot be read: ..." */
    char *remark;  /* NULL, or why native frames are missing */
    struct process_thread *threads; /* owned, with the texts of their frames */
    size_t count;
    bool whole; /* native frames of all threads are there, to the outermost one */
};

/* Call it with the same `files` for many processes. Reads until `deadline_ns`, of clock_mono_ns(),
 * at the latest. 0: that process is not Python, or has ended. 1: it is; the caller destroys `out`
 * in any case. */
int process_stacks_read(struct runtime_files *files, const struct rights *rights, pid_t pid,
                        int64_t deadline_ns, struct process_stacks *out);
void process_stacks_destroy(struct process_stacks *stacks);
/* Adds copies of frames, the outermost first. `source` has the innermost first. Of more than `max`,
 * both ends are added, with `outer` frames of the outer one. `cut`: further out, more are unknown.
 */
void process_frames_add(struct process_thread *thread, const struct stack_frame *source,
                        size_t count, size_t max, size_t outer, bool cut);
void process_frames_free(struct stack_frame *frames, size_t count); /* with their texts */
