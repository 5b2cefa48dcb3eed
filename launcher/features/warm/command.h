/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of a Python interpreter: what its options are, and what it runs. Pure. */
#pragma once

#include <stddef.h>

struct warm_command {
    char kind;      /* 's': a script, 'm': python -m, 'c': python -c */
    size_t options; /* arguments before -m, -c or the script; the first is the interpreter's name */
    const char *target; /* the script, the module or the code; borrowed */
    size_t rest;        /* number of the first argument of the target */
};

/* NULL; or why a rank with this program (resolved) and arguments cannot be forked. */
const char *warm_command_read(const char *path, char *const *argv, struct warm_command *out);
