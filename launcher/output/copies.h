/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of --output-filename: raw copies of what the ranks write, by path.
 *
 * A file belongs to all streams that have its name at the moment. It is remembered for the rest of
 * the job: a stream that gets it later appends to it. If only one stream can have a file, bytes are
 * written as they come. Where several streams can share a file, only whole lines are written. An
 * unfinished line is held until its rest, or the end of its stream, or more than LINES_HOLD_MAX
 * bytes of it have come. A stream that writes after the unfinished line of another begins a new
 * line.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"
#include "output/label.h"
#include "output/lines.h"
#include "output/sink.h"

struct copies;
struct copy;

/* The end of a file that a stream has; all zero: no file. */
struct copy_end {
    struct copy *copy;
    struct lines lines; /* held */
};

struct files;

/* `merge`: the stderr of a rank goes to the file of its stdout. */
struct files *files_create(const char *text, int ranks, bool merge, struct error *err);

/* Owns `files`. `append`: what the files hold already stays. */
struct copies *copies_create(struct sink *sink, struct files *files, bool append);
void copies_destroy(struct copies *copies);

/* From now on streams can share any file: in an elastic job two workers can have had the same
 * rank. */
void copies_share(struct copies *copies);

/* The stream with these facts begins; its file is created if it is new. */
void copies_begin(struct copies *copies, struct copy_end *end, const struct label_facts *facts);
void copies_add(struct copies *copies, struct copy_end *end, const char *bytes, size_t length);
void copies_finish(struct copies *copies, struct copy_end *end); /* also when it had not begun */
