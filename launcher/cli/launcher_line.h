/* SPDX-License-Identifier: Apache-2.0 */
/* A line of another launcher in the place of the program: `hvdrun -H a,b torchrun train.py`. */
#pragma once

#include "cli/flags.h"
#include "model/settings/line.h"

/* The launcher of features.def by whose name hvdrun was started, through a link. NULL: none. */
const char *launcher_line_name(const char *argv0);

/* Puts the flags and the program of such a line in its place. Without one, it warns of a launcher
 * that hvdrun would start once for each rank. `line` is all zero before, and destroyed by the
 * caller; its warnings and further mistakes are for the user. -1: it is wrong. STATUS_USAGE. */
int launcher_line_take(struct flags *flags, char *const *envp, struct line *line,
                       struct error *err);
