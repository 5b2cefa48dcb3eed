/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kinds of ranks. Ranks of one kind can be forked from the same interpreter: all that it reads
 * before it runs the script is the same. That is the interpreter, its options, the script, the
 * folder, and the environment without what may differ from rank to rank. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/strv.h"
#include "features/warm/holder.h"
#include "io/child.h"

/* The command line of a Python interpreter: what its options are, and what it runs. Pure. */

struct warm_command {
    char kind;      /* 's': a script, 'm': python -m, 'c': python -c */
    size_t options; /* arguments before -m, -c or the script; the first is the interpreter's name */
    const char *target; /* the script, the module or the code; borrowed */
    size_t rest;        /* number of the first argument of the target */
};

/* NULL; or why a rank with this program (resolved) and arguments cannot be forked. */
const char *warm_command_read(const char *path, char *const *argv, struct warm_command *out);

struct warm_kind {
    char *path;
    struct strv interpreter; /* its name and its options */
    char command;            /* warm_command.kind */
    char *target, *wdir;     /* wdir NULL: that of the agent */
    struct strv env;         /* without the variables of ranks */
    struct strv names;       /* of those */
};

/* NULL; or why such a rank cannot be forked, and nothing to destroy. */
const char *warm_kind_read(const struct child_spec *spec, const struct warm_command *command,
                           struct warm_kind *out);
/* Whether it would be read to be this one; false also where it cannot be read. */
bool warm_kind_is(const struct warm_kind *kind, const struct child_spec *spec,
                  const struct warm_command *command);
/* Whether it knew which variables of such a rank differ, when it was read. */
bool warm_kind_knows(const struct warm_kind *kind, const struct child_spec *spec);
void warm_kind_write(const struct warm_kind *kind, struct buf *out);     /* all of it, as fields */
void warm_kind_take(struct field_reader *fields, struct warm_kind *out); /* and back */
void warm_kind_destroy(struct warm_kind *kind);
