/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of --help, within 80 columns. */
#pragma once

#include "base/buf.h"
#include "cli/control_forms.h"

/* `hvdrun --help`: what a new user needs. */
void help_short(struct buf *out);

/* `hvdrun --help all`: all options by group. */
void help_text(struct buf *out);

/* Appends what the command does, and its options. */
void control_help(enum control_command command, struct buf *out);
