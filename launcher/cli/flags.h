/* SPDX-License-Identifier: Apache-2.0 */
/*
 * argv taken apart: flags in their order, and the programs with their arguments. Nothing is
 * judged here but the grammar: what a value means is settings_set()'s business, and the order of
 * precedence that of command_line.c.
 */
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "base/strv.h"
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
    struct strv warnings; /* deprecated spellings, ignored options */
};

/* -1 and a text naming the option on a wrong grammar; `out` may be destroyed in either case. */
int flags_scan(int argc, char *const *argv, struct flags *out, struct error *err);
void flags_destroy(struct flags *flags);
