/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every way to write an option on the command line: "--num-proc", "-np", "--no-autotune", "--gloo".
 * One walk over them serves the parser, the suggestions and the completion.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "model/settings/option.h"

struct spelling {
    const char *word; /* with its dashes; borrowed while the walk is at it */
    enum option_id id;
    const char *fixed;   /* the value that the bare word means; NULL: it needs one */
    const char *instead; /* deprecated: what to write; NULL: fine */
    const char *help;    /* of a fixed spelling; NULL: that of the option */
    bool takes_value;    /* WORD=VALUE is possible */
};

/* Calls `each` for every spelling until it returns other than 0, and returns that. */
int spelling_each(int (*each)(void *context, const struct spelling *spelling), void *context);

/* Finds the spelling of exactly `length` bytes of `word`. `with_value`: a "=VALUE" follows it. Of a
 * word that exists in two forms (--mpi and --mpi=KIND) the right one is taken. False: unknown.
 * out->word is not set. */
bool spelling_find(const char *word, size_t length, bool with_value, struct spelling *out);

/* Appends ": did you mean '--hosts'?" when a known spelling is near, else nothing. */
void spelling_suggest(const char *word, size_t length, struct buf *out);
