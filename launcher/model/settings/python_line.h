/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of a Python interpreter: what its options are, and what it runs. Pure. */
#pragma once

#include <stddef.h>

struct python_line {
    char kind;      /* 's': a script, 'm': python -m, 'c': python -c */
    size_t options; /* arguments before -m, -c or the script; the first is the interpreter's name */
    const char *target; /* the script, the module or the code; borrowed */
    size_t rest;        /* number of the first argument of the target */
};

enum python_line_state {
    PYTHON_LINE_READ,
    PYTHON_LINE_OTHER_PROGRAM,
    PYTHON_LINE_OTHER_OPTIONS, /* that are not known here; or it reads its program from stdin */
    PYTHON_LINE_NO_VALUE,      /* an option lacks its value */
    PYTHON_LINE_NO_TARGET,
};

/* `path`: of the program, which is Python if its name says so. */
enum python_line_state python_line_read(const char *path, char *const *argv,
                                        struct python_line *out);
