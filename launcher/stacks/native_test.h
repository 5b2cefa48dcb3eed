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
    bool whole;    /* it ends at the outermost frame, at Python, or at NATIVE_FRAMES_MAX frames */
};

struct native_stacks {
    char *trouble; /* NULL, or why there are no frames, or not those of all threads */
    struct native_thread *threads;
    size_t count;
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
 * does not count if a library or program that called MPI has a frame inside of the call, too.
 */
#define NATIVE_CALL_FILES 32 /* with frames in one stack: more are too many to tell */

struct native_call {
    struct native_call_file {
        uint64_t name; /* its hash */
        size_t first, last;
    } files[NATIVE_CALL_FILES];
    size_t file_count, count; /* of frames */
    size_t mpi;               /* the number of frames up to the outermost one of MPI; 0: none */
    uint64_t back;
    bool unknown; /* code without a file, or of too many */
};

/* All frames of a stack, the innermost first. Begin with zeros. */
void native_call_add(struct native_call *call, const struct unwind_frame *frame);

/* Where the thread goes on when the call returns: an address in the function that called MPI. 0: it
 * is in no such call. */
uint64_t native_call_back(const struct native_call *call);
