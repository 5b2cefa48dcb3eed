/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the texts about jobs: what a job or a record says, made safe for the terminal, and
 * tables. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/strv.h"

/* Appends a text from outside on one line, without control characters. */
void control_show_text(const char *text, struct buf *out);
/* The same, with at most `width` characters (4 or more); "..." stands for a lost end. */
void control_show_cut(const char *text, size_t width, struct buf *out);
/* A text of several lines, without control characters; each gets `margin` in front. */
void control_show_lines(const char *text, const char *margin, struct buf *out);

/* "42 s", "1 min 35 s", "1 h 02 min", "3 days". Nonsense counts as 0. */
void control_show_duration(double seconds, struct buf *out);

/* "42 B", "1.5 GiB", "120 GiB". */
void control_show_bytes(double bytes, struct buf *out);

/* "42.5 %", from the progress in a status or a record. false: it has no percent. */
bool control_show_percent(const json_t *progress, struct buf *out);
/* One or two whole lines; nothing if it is not an object. */
void control_show_progress(const json_t *progress, struct buf *out);

/* "hvdrun-a-17", or "hvdrun-a-17 (NAME)": the job in a status or a record. */
void control_show_job(const json_t *facts, struct buf *out);

/* The whole answer, for --json. */
void control_show_json(const json_t *answer, struct buf *out);

/* The string under a key; `otherwise` if there is none. Borrowed. */
const char *control_text_of(const json_t *object, const char *key, const char *otherwise);

/* A table of texts with aligned columns. */
struct text_table {
    size_t columns;    /* at least 1 */
    size_t width;      /* of a line, in characters; 0: any. The last cell is cut to fit */
    unsigned right;    /* bits: 1 << column; these columns are aligned to the right */
    struct strv cells; /* row by row; the first row has the titles */
};

/* Cells come one after the other, row by row. The text is copied. */
void text_table_add(struct text_table *table, const char *text);

/* Appends one line for each row. A cell that is longer than others by far does not make its column
 * wider, but moves the cells after it to the right. */
void text_table_print(const struct text_table *table, struct buf *out);
void text_table_destroy(struct text_table *table);
