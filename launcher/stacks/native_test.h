/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of native need, and nobody else. */
#pragma once

#include <stdbool.h>

#include "stacks/module/unwind_module.h"
#include "stacks/native.h"

#define NATIVE_FRAMES_MAX 1000 /* of one thread; the ones further out are not looked for */

/* A function is without arguments; "+0x1b40", the place in the file, if it has no name. The file is
 * the source if the line is known, else the program or library; "" for neither. */
struct native_thread {
    pid_t tid;
    struct stack_frame
        *frames; /* owned, with their texts; the innermost first; none: see `trouble` */
    size_t count;
    uint64_t back; /* native_call_back() */
    bool helper;   /* native_call_is_helper() */
    bool ended;    /* it ends at the outermost frame */
    bool whole;    /* it ends at the outermost frame, at Python, or at NATIVE_FRAMES_MAX frames */
};

struct native_stacks {
    char *trouble; /* NULL, or why there are no frames, or not those of all threads */
    struct native_thread *threads;
    size_t count;
    bool all; /* the process had no more threads */
};

/* The caller destroys `out` in any case. Call it in a process that you can leave behind:
 * see process.h. `deadline_ns` is of clock_mono_ns(). */
void native_read(const struct unwind_module *module, const struct rights *rights, pid_t pid,
                 int64_t deadline_ns, struct native_stacks *out);
void native_stacks_destroy(struct native_stacks *stacks);

/* As process_native_read(), with native frames that were read already. */
void process_native_add(const struct rights *rights, pid_t pid, const struct native_stacks *native,
                        struct process_stacks *stacks);

/* The function without its arguments, and with "<...>" for those of templates. "+0x1b40", the place
 * in the file, if it has no name. At most 160 bytes. The caller's. */
char *native_name(const struct unwind_frame *frame);

/* It runs Python frames: the interpreter's loop. */
bool native_name_is_python(const char *function);

/* At the outer end of a stack: it begins every program or thread, and says nothing. Without the C
 * library's debug symbols, some of these have no name. */
bool native_name_is_start(const char *function, const char *file);

/*
 * The call of MPI in which a thread is: its outermost frame of a function of MPI.
 *
 * The program's own code can run inside of such a call, such as an MPI_Op that computes. So a call
 * counts only if all frames inside of it are of the MPI library, of those below it and of the C
 * library. All must be certain, and the call must not wait for a file or for another job.
 */
struct native_call {
    size_t count; /* of frames */
    size_t mpi;   /* the number of frames up to the outermost one of MPI; 0: none */
    uint64_t back;
    bool strange, guessed; /* of a frame up to here: it is of another file; it is not certain */
    bool refused;          /* the outermost call does not count */
    bool outer_inside;     /* the outermost frame but those of the C library is of MPI's files */
};

/* All frames of a stack, the innermost first. Begin with zeros. */
void native_call_add(struct native_call *call, const struct unwind_frame *frame);

/* Where the thread goes on when the call returns: an address in the function that called MPI. 0: it
 * is in no such call. */
uint64_t native_call_back(const struct native_call *call);

/* It is a thread of the MPI library itself: it began there, and is not in a call of MPI. */
bool native_call_is_helper(const struct native_call *call);
