/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kinds of ranks. Ranks of one kind can be forked from the same interpreter: all that it reads
 * before it runs the script is the same. That is the interpreter, its options, the script, the
 * folder, and the environment without what may differ from rank to rank. Pure.
 */
#pragma once

#include <stdbool.h>

#include "base/strv.h"
#include "features/warm/command.h"
#include "features/warm/fields.h"
#include "io/child.h"

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
