/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Splits argv into flags, in their order, and programs with their arguments. It checks only the
 * grammar: settings_set() checks the values, and command_line.c applies the precedence.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/strv.h"
#include "cli/foreign.h"
#include "model/settings/option.h"

struct flag {
    enum option_id id;
    char *text;  /* owned; the value */
    char *typed; /* owned; the option as it was typed, without the value */
};

struct flag_list {
    struct flag *items;
    size_t count;
};

/* A program and the flags before it. */
struct section {
    struct flag_list flags;
    struct strv argv; /* empty: no program (only in the last section) */
};

struct flags {
    struct section *sections; /* at least one */
    size_t count;
    bool dashes;          /* a `--` is before the last program */
    struct strv warnings; /* deprecated spellings, ignored options */
    struct strv more;     /* further mistakes, after the one in the error */
    struct rewrite rewrite;
};

/* -1: the grammar is wrong, and the text names the option. The scan goes on after a mistake, so
 * that the user hears of all of them. The caller may destroy `out` in any case. */
int flags_scan(int argc, char *const *argv, struct flags *out, struct error *err);
void flags_destroy(struct flags *flags);

/* `owner` said the flags: they become "OWNER (--NAME)". */
void flag_list_append(struct flag_list *to, struct flag_list *from_take, const char *owner);
