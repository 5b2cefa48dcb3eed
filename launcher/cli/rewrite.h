/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command line with mistakes, as hvdrun wants it: made while the flags are read, for the user to
 * copy. Pure.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/strv.h"
#include "cli/foreign.h"

struct rewrite {
    struct strv words; /* without "hvdrun" */
    bool unsure;       /* only the user knows the rest */
    bool foreign;      /* options of other launchers were replaced */
    bool scripts;      /* one of these launchers starts Python scripts */
};

#define REWRITE_INIT        \
    {                       \
        .words = STRV_INIT, \
    }

void rewrite_destroy(struct rewrite *rewrite);
void rewrite_keep(struct rewrite *rewrite, char *const *words, int count);

/* In the place of an option of another launcher. */
void rewrite_foreign(struct rewrite *rewrite, const struct foreign *foreign,
                     const char *const values[2]);

/* The first word of a program: "train.py" becomes "python3 train.py" where the other launcher would
 * have run it so. */
void rewrite_program(struct rewrite *rewrite, const char *word);

/* Appends the line, quoted for a shell. False: it is not known, or nothing was replaced. */
bool rewrite_text(const struct rewrite *rewrite, struct buf *out);
