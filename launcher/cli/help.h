/* SPDX-License-Identifier: Apache-2.0 */
/* What hvdrun says of itself: the texts of --help, within 80 columns, and of --version. */
#pragma once

#include "base/buf.h"
#include "cli/control_words.h"

/* `hvdrun --help`: what a new user needs. */
void help_short(struct buf *out);

/* `hvdrun --help all`: all options by group. */
void help_text(struct buf *out);

/* Appends what the command does, and its options. */
void control_help(enum control_command command, struct buf *out);

/* --version. `module_dir`: the folder of the modules, all of which it loads. */
void version_text(const char *module_dir, struct buf *out);

void check_build_text(struct buf *out); /* --check-build: what the build contains */
