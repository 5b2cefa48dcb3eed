/* SPDX-License-Identifier: Apache-2.0 */
/*
 * INI text, line by line: "[section]" and "key = value" (or "key: value"). Pure.
 *
 * inih reads the lines. This file adds what inih lacks: line numbers, sections without keys, and
 * long lines and names, which inih cuts. It also keeps inih from joining an indented line to the
 * one before. Comments start with # or ; at the beginning of a line, with ; after a blank, or with
 * # after a section. A value that is in quotes as a whole, "..." or '...', is the text between
 * them, with its blanks and semicolons; nothing inside is special. CRLF and a byte order mark are
 * fine.
 */
#pragma once

#include "base/error.h"

struct ini_place {
    const char *file;
    int line; /* from 1 */
};

/* Both return 0, or -1 to stop with an error that names the place. Texts are borrowed until they
 * return. */
struct ini_reader {
    /* `name` is the text in the brackets, without blanks around it; NULL: skips sections */
    int (*section)(void *context, const struct ini_place *place, const char *name,
                   struct error *err);
    /* `section` is "" before the first one */
    int (*pair)(void *context, const struct ini_place *place, const char *section, const char *key,
                const char *value, struct error *err);
};

/* `text` is the whole file, without NUL bytes. Returns -1 with the error of a reader's function, or
 * with STATUS_USAGE for a line that is neither: "FILE:LINE: expected [section] or key = value". */
int ini_lines_read(const char *text, const char *file, const struct ini_reader *reader,
                   void *context, struct error *err);
