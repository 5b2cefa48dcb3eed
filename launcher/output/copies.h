/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of --output-filename: raw copies of what the ranks say, by path.
 *
 * A file belongs to all streams that have its name at the moment, and is remembered for the rest of
 * the job: a stream that comes to it later goes on behind what is there. In a file that only one
 * stream can have, bytes go as they come. Where several may meet, whole lines do: an unfinished one
 * is kept back until its rest, or the end of its stream, or more than LINES_HOLD_MAX bytes of it
 * have come. Whoever writes behind the unfinished line of another one begins a new line.
 */
#pragma once

#include "output/files.h"
#include "output/lines.h"
#include "output/sink.h"

struct copies;
struct copy;

/* What a stream has of its file; all-zero: none. */
struct copy_end {
    struct copy *copy;
    struct lines lines; /* kept back */
};

/* Owns `files`. `append`: they go on behind what they hold already. */
struct copies *copies_create(struct sink *sink, struct files *files, bool append);
void copies_destroy(struct copies *copies);

/* From now on streams may meet in any file: those of elastic jobs, where two workers may have been
 * the same rank. */
void copies_share(struct copies *copies);

/* The stream with these facts begins; its file is made when it is a new one. */
void copies_begin(struct copies *copies, struct copy_end *end, const struct label_facts *facts);
void copies_add(struct copies *copies, struct copy_end *end, const char *bytes, size_t length);
void copies_finish(struct copies *copies, struct copy_end *end); /* also when it had not begun */

int copies_count(const struct copies *copies); /* files so far */
