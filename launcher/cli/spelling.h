/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All spellings of options on the command line: "--num-proc", "-np", "--no-autotune", "--gloo".
 * The parser, the suggestions and the completions use the same walk over them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "model/settings/option.h"

struct spelling {
    const char *word; /* with its dashes; borrowed until `each` returns */
    enum option_id id;
    const char *fixed;   /* the value that the bare word means; NULL: it needs a value */
    const char *instead; /* what to write instead of a deprecated word; NULL: not deprecated */
    const char *help;    /* of a fixed spelling; NULL: the help of the option applies */
    bool takes_value;    /* WORD=VALUE is possible */
};

/* Calls `each` for every spelling until it returns a value other than 0. Returns that value. */
int spelling_each(int (*each)(void *context, const struct spelling *spelling), void *context);

/* Finds the spelling that is the first `length` bytes of `word`. `with_value`: a "=VALUE" follows,
 * which decides between two forms of a word (--mpi and --mpi=KIND). Does not set out->word. False:
 * there is no such spelling. */
bool spelling_find(const char *word, size_t length, bool with_value, struct spelling *out);

/* The known spelling that is near. NULL: none is. Borrowed from `room`. */
struct suggest;
const char *spelling_near(const char *word, size_t length, struct suggest *room);

/* Texts about an option for people. */

/* Appends "-np, -n, --np, --num-proc N". `all`: also the words with one dash that exist only for
 * compatibility. */
void describe_spellings(enum option_id id, bool all, struct buf *out);

/* Appends its help with its words and default: "... (auto, local; default auto)". */
void describe_help(enum option_id id, struct buf *out);

/* Appends the words of an ENUM or RANK option, separated by `between`. */
void describe_words(enum option_id id, const char *between, struct buf *out);
