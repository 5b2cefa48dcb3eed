/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generates documents at build time, from the list of options and that of commands: man page, shell
 * completions, tables.
 */
#pragma once

#include "base/buf.h"

void docgen_man(struct buf *out);         /* hvdrun.1 */
void docgen_table(struct buf *out);       /* docs/options.md */
void docgen_coming_from(struct buf *out); /* the tables at the end of docs/coming-from.md */
void docgen_bash(struct buf *out);
void docgen_zsh(struct buf *out);
void docgen_fish(struct buf *out);

/* Parts of them: the commands for a running job (cli/control_words.h). */
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

/* Append a help text for a place between single quotes. That of zsh is a text of _arguments or
 * _describe; the first knows brackets, both know colons. */
void docgen_quote_zsh(const char *text, struct buf *out);
void docgen_quote_fish(const char *text, struct buf *out);
