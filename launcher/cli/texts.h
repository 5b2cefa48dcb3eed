/* SPDX-License-Identifier: Apache-2.0 */
/* What hvdrun says of itself, its options and its commands. */
#pragma once

#include "base/buf.h"
#include "cli/control_words.h"
#include "model/settings/settings.h"

/* help.c: the texts of --help, within 80 columns, and of --version. */

/* `hvdrun --help`: what a new user needs. */
void help_short(struct buf *out);

/* `hvdrun --help all`: all options by group. */
void help_text(struct buf *out);

/* Appends what the command does, and its options. */
void control_help(enum control_command command, struct buf *out);

/* --version. `module_dir`: the folder of the modules, all of which it loads. */
void version_text(const char *module_dir, struct buf *out);

void check_build_text(struct buf *out); /* --check-build: what the build contains */

/* show_config.c: what --show-config prints: the value of each option, and where it comes from.
 * Pure. */

/*
 * Appends a line for each option, in three columns: the name of the option without dashes, its
 * value, and the source of the value. A value that is empty or has blanks is in double quotes; "-"
 * is an option without value. The source is "default", FILE:LINE, "variable NAME" or "command line
 * OPTION". A list has a line for each item. `env` has one for each variable that is given, with the
 * value that counts.
 *
 * Values of variables whose names look like secrets (TOKEN, KEY, PASSWORD...) are masked, as are
 * such NAME=VALUE words inside other values, and passwords in URLs.
 */
void show_config_text(const struct settings *settings, struct buf *out);

/* Appends `value`, masked as above. `whole`: it is one NAME=VALUE, and VALUE ends with the text. */
void show_config_masked(const char *value, bool whole, struct buf *out);

/*
 * docgen.c and docgen_*.c: documents at build time, from the list of options and that of commands:
 * man page, shell completions, tables.
 */

void docgen_man(struct buf *out);         /* hvdrun.1 */
void docgen_table(struct buf *out);       /* those of docs/options.md */
void docgen_coming_from(struct buf *out); /* those of docs/coming-from.md */
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
