/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What hvdrun-unwind.so exports: a table of functions that find the native frames of a thread. It
 * stops nothing and asks for no registers: the caller has these, and says how to read the memory.
 * Module and launcher are built together.
 *
 * Each unwind_process is for one thread of the caller at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define UNWIND_MODULE_VERSION 2
/* for io/module_open.h */
#define UNWIND_MODULE_KIND                                                                   \
    (&(const struct module_kind){"hvdrun-unwind.so", "hvdrun_unwind", UNWIND_MODULE_VERSION, \
                                 "is libdw of elfutils installed (libdw1)?"})
#define UNWIND_REGISTERS 33

struct unwind_registers {
    uint64_t values[UNWIND_REGISTERS]; /* by DWARF number; x86-64 has 17 */
    uint64_t known;                    /* bit N: values[N] is known */
    uint64_t pc;
};

/* The memory of the thread. -1: it cannot be read. */
struct unwind_memory {
    int (*read)(void *context, uint64_t address, void *out, size_t length);
    void *context;
};

struct unwind_frame {     /* all text is borrowed until the callback returns */
    const char *function; /* NULL: unknown */
    const char *object;   /* the path of the file that has the code; "": no file */
    const char *source;   /* NULL: unknown */
    int line;             /* of the source */
    uint64_t pc, offset;  /* the offset is in memory, from the object's start */
    bool certain; /* a table says how to find the next frame out from it; else that is a guess */
};

struct unwind_process;

struct unwind_module {
    int version;
    /* Reads which files the process has mapped. NULL: it cannot, and `trouble` says why. */
    struct unwind_process *(*open)(pid_t pid, char *trouble, size_t size);
    /* Calls `frame` with each frame, the innermost first, until it returns other than 0. 0: that
     * was the whole stack. -1: a frame is missing at the end, or `frame` has ended it. */
    int (*walk)(struct unwind_process *process, const struct unwind_registers *registers,
                const struct unwind_memory *memory,
                int (*frame)(void *context, const struct unwind_frame *frame), void *context);
    void (*close)(struct unwind_process *process); /* accepts NULL */
};
