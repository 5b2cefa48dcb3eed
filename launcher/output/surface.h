/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One place where lines of many streams meet: a terminal, a pipe, or a file that several ranks
 * share. It remembers the unfinished line at its end, so that no text lands inside the line of
 * another rank. Pure: bytes leave through append().
 *
 * - A part of a line (lines.h) is shown as it comes, and its owner continues it. Text of another
 *   owner first ends it with a newline; the first owner then continues with its label and
 *   SURFACE_CONTINUED.
 * - A line that ends with \r (a progress bar) is live on a terminal: the next text of any owner
 *   replaces it. Elsewhere it becomes a line of its own, and an empty one vanishes.
 * - The last line of a stream gets the newline that it lacks.
 * - With `bytes` (no label, and not a terminal) nothing is changed. \r and a missing last newline
 *   stay. Only the newline that separates two owners is added.
 * - The progress line of the launcher itself is erased before other text and drawn again by
 *   surface_settle(), when the last line is finished.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "output/lines.h"

/*
 * Puts a label in front of each whole line. This is the only work for every line of every rank, so
 * it works directly in the buffer that is written. Pure.
 */
/* Lines that wait for their label. `text` ends with a newline; it moves past the lines taken. */
struct stamp {
    const char *label;
    size_t label_length;
    const char *text;
    size_t length;
};

/* Takes as many whole lines as fit into `room` bytes at `out` with their labels; returns how many
 * bytes were put there. 0: the next line does not fit. Bytes of the room after them can have
 * changed too. */
size_t stamp_lines(struct stamp *stamp, char *out, size_t room);

#define SURFACE_CONTINUED "..."

struct surface;

struct surface_config {
    bool live;  /* a terminal that understands \r and "erase to the end of the line" */
    bool crlf;  /* the terminal is in raw mode: every \n needs a \r */
    bool bytes; /* see above */
    void (*append)(void *context, int stream, const void *bytes, size_t length);
    /* Whole lines, each with the label before it: takes all of them. */
    void (*append_lines)(void *context, int stream, struct stamp *lines);
    int (*columns)(void *context); /* width of the terminal, 0 = unknown; may be NULL */
    void *context;
};

struct surface *surface_create(const struct surface_config *config);
void surface_destroy(struct surface *surface);

/* append() gets `stream`. `owner` is any number >= 0 that names the stream of a rank. `label` goes
 * before the line as it is, and before each line of a piece of several. */
void surface_piece(struct surface *surface, int stream, int owner, const char *label,
                   size_t label_length, const struct lines_piece *piece);

/* Bytes as they are (a rank with a terminal of its own). */
void surface_raw(struct surface *surface, int stream, int owner, const char *bytes, size_t length);

/* This owner is gone; a later one with its number is another. */
void surface_leave(struct surface *surface, int owner);

/* The launcher's own lines; a missing last newline is added. */
void surface_text(struct surface *surface, int stream, const char *text, size_t length);

/* Sets (or with NULL removes) the progress line of a live surface; elsewhere it does nothing. */
void surface_progress(struct surface *surface, int stream, const char *text);
void surface_settle(struct surface *surface); /* after a batch of text */
void surface_finish(struct surface *surface); /* nothing more comes: ends the last line */

/* How many bytes of a text fit into `columns`, counting code points and leaving out escape
 * sequences. It never cuts a UTF-8 sequence. */
size_t surface_fit(const char *text, size_t length, int columns);
