/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads of a Python interpreter and their frames, from the memory of its process. Pure: see
 * memory.h. The process may run meanwhile, so any read can be torn. The rules that find this:
 *
 * - Each pointer, length and type is checked, and each loop has a limit.
 * - The frames of a thread are read twice, and must be the same. Otherwise they are read again, at
 *   most PYTHON_TRIES times.
 *
 * The threads are read one after another: their stacks are not of one moment.
 */
#pragma once

#include "stacks/code.h"
#include "stacks/stack.h"

#define PYTHON_FRAMES_MAX 1000 /* the innermost; deeper ones are left out */
#define PYTHON_THREADS_MAX 1024
#define PYTHON_TRIES 8

/* The name of the code of features/warm/mother.py. */
#define PYTHON_MOTHER_FILE "<hvdrun --warm>"

struct python {
    struct memory *memory; /* borrowed */
    uint64_t runtime;      /* _PyRuntime */
    struct python_layout layout;
    struct code_cache codes;
};

struct python_thread {
    uint64_t address; /* of its PyThreadState */
    uint64_t pthread; /* pthread_self() */
    int64_t native;   /* its number in the kernel, in its own PID namespace; 0: unknown */
    bool holds_gil;
};

struct python_stack {
    struct stack_frame *frames; /* the innermost first; texts are borrowed from the struct python */
    size_t count;
    bool cut; /* there are more */
};

/* -1: this version is unknown. In any case the caller destroys it. */
int python_init(struct python *python, struct memory *memory, uint64_t runtime, int minor);
void python_destroy(struct python *python);

/* The threads of all interpreters, the oldest first, in a new array. None: the interpreter does not
 * run (yet, any more). -1: the list cannot be read; `*out` is NULL. */
int python_threads(struct python *python, struct python_thread **out, size_t *count);

/* -1: the frames cannot be read, or change too fast; `out` is empty. */
int python_stack_read(struct python *python, const struct python_thread *thread,
                      struct python_stack *out);
void python_stack_destroy(struct python_stack *stack);
