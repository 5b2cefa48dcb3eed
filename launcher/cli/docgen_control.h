/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands for a running job (cli/control_forms.h) in the man page and the completions. These
 * texts are parts of the documents of cli/docgen.h.
 */
#pragma once

#include "base/buf.h"

void docgen_control_man(struct buf *out); /* a section */

/* A function _hvdrun_control COMMAND, which completes the words after COMMAND. */
void docgen_control_bash(struct buf *out);
/* A function _hvdrun_program, which completes the first word, and _hvdrun_control as in bash. */
void docgen_control_zsh(struct buf *out);
/* Complete lines. */
void docgen_control_fish(struct buf *out);

/* "status", "drain"..., separated by `between`. */
void docgen_control_names(const char *between, struct buf *out);
/* The same of the first words that need no job. */
void docgen_tool_names(const char *between, struct buf *out);
