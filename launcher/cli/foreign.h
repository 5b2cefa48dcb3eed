/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of other launchers that hvdrun does not have. It accepts those with a plain meaning. For
 * each other one, it says what to write instead. cli/foreign.def is the list. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/strv.h"
#include "model/settings/option.h"

enum foreign_launcher { /* bits */
                        MPIRUN = 1,
                        MPIEXEC = 2,
                        SRUN = 4,
                        TORCHRUN = 8,
                        DEEPSPEED = 16,
                        ACCELERATE = 32,
};

enum foreign_kind {
    FOREIGN_SETS,    /* accepted: sets an option */
    FOREIGN_DONE,    /* accepted: hvdrun always does that */
    FOREIGN_DROP,    /* accepted with a notice: it has no meaning here */
    FOREIGN_HINT,    /* refused: `text` says what to write instead */
    FOREIGN_PROGRAM, /* the same, and a program with its arguments follows */
    FOREIGN_LINE,    /* refused: hvdrun takes the whole line, behind `instead` */
    FOREIGN_SAME,    /* an option of hvdrun with the same meaning */
    FOREIGN_OTHER,   /* an option of hvdrun with another meaning, which `text` gives */
};

struct foreign {
    enum foreign_kind kind;
    unsigned launchers;  /* enum foreign_launcher */
    const char *words;   /* its spellings, separated by blanks */
    const char *arg;     /* what its manual calls the value or the two values */
    enum option_id id;   /* FOREIGN_SETS */
    const char *value;   /* FOREIGN_SETS: a template with $1 and $2 */
    const char *idle;    /* values with which it has no effect, separated by blanks */
    const char *instead; /* FOREIGN_HINT, FOREIGN_PROGRAM: a template; NULL: the user must decide */
    const char *text;    /* a sentence or a part of one, with `code` */
};

extern const struct foreign foreign_table[]; /* the last one has no words */

/* The entry that the first `length` bytes of `word` spell, if hvdrun itself does not have that
 * spelling. NULL: there is none. */
const struct foreign *foreign_find(const char *word, size_t length);

/* How many words after the option are its values: 0, 1 or 2. */
int foreign_values(const struct foreign *foreign);

/* Appends the template with the values in the place of $1 and $2. A missing value (NULL) becomes
 * what `arg` calls it. */
void foreign_fill(const struct foreign *foreign, const char *template, const char *const values[2],
                  struct buf *out);

/* With these values, it changes nothing that hvdrun does. */
bool foreign_is_idle(const struct foreign *foreign, const char *const values[2]);
/* It has no meaning here, such as a parameter of mpirun itself. */
bool foreign_is_dropped(const struct foreign *foreign, const char *const values[2]);

/* FOREIGN_SETS: appends the text for settings_set(). -1: the value is not a number and must be one.
 */
int foreign_value(const struct foreign *foreign, const char *const values[2], struct buf *out,
                  struct error *err);

/* What the table says of it, without the marks of code. */
void foreign_text(const struct foreign *foreign, struct buf *out);

/* FOREIGN_HINT, FOREIGN_PROGRAM: appends the advice to `typed`, one option or `several` as "a, b".
 */
void foreign_refuse(const struct foreign *foreign, const char *typed, bool several,
                    const char *const values[2], struct buf *out);

/*
 * A command line with mistakes, as hvdrun wants it: made while the flags are read, for the user to
 * copy. Pure.
 */
struct rewrite {
    struct strv words; /* without "hvdrun" */
    bool unsure;       /* only the user knows the rest */
    bool foreign;      /* options of other launchers were replaced */
    bool scripts;      /* one of these launchers starts Python scripts */
    const char *line;  /* the name of a launcher that is missing in front of its line; NULL: none */
    bool has_line;     /* there are options of such a launcher */
    size_t line_at;    /* where they begin */
    bool mixed;        /* other options are behind its options */
};
/* Before each option; NULL: it is one of hvdrun. */
void rewrite_begin(struct rewrite *rewrite, const struct foreign *foreign);

/* In the place of an option of another launcher. */
void rewrite_foreign(struct rewrite *rewrite, const struct foreign *foreign,
                     const char *const values[2]);

/* The first word of a program: "train.py" becomes "python3 train.py" where the other launcher would
 * have run it so. */
void rewrite_program(struct rewrite *rewrite, const char *word);

/* Appends the line, quoted for a shell. False: it is not known, or nothing was replaced. */
bool rewrite_text(const struct rewrite *rewrite, struct buf *out);
