/* SPDX-License-Identifier: Apache-2.0 */
/* What hvdrun says of itself, its options and its commands. */
#pragma once

#include <stdbool.h>

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
 * docgen.c and docgen_*.c: documents at build time, from the list of options and that of commands.
 *
 * The man page and the shell completions are templates (cli/documents), with marks such as
 * {{commands}}, for which a list comes in. What is behind the name of a mark, as in {{commands|}},
 * comes between the items. If the list has whole lines, the mark is such a line, too.
 */
struct spelling;
struct docgen_mark { /* its name, and one of the others */
    const char *name, *text;
    void (*lines)(struct buf *out);
    int (*each_spelling)(void *out, const struct spelling *spelling);
    /* lists of words: options and commands for which it holds, or others */
    bool (*option)(const struct spelling *spelling);
    bool (*command)(int command);
    void (*words)(const char *between, struct buf *out);
};

/* The last one has no name. */
extern const struct docgen_mark docgen_man_marks[], docgen_shell_marks[], docgen_control_marks[];

/* The first line of a template is its licence, and left out. -1: a mark is wrong. */
int docgen_fill(const char *template, struct buf *out, struct error *err);

void docgen_table(struct buf *out);       /* those of docs/options.md */
void docgen_coming_from(struct buf *out); /* those of docs/coming-from.md */

/* Append a help text for a place between single quotes. That of zsh is a text of _arguments or
 * _describe; the first knows brackets, both know colons. */
void docgen_quote_zsh(const char *text, struct buf *out);
void docgen_quote_fish(const char *text, struct buf *out);
