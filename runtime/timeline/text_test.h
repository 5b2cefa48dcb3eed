/* SPDX-License-Identifier: Apache-2.0 */
/* What text.c shares with its tests. */
#pragma once

#include "base/map.h"
#include "timeline/text.h"

/* Appends a JSON string. Bytes that are not UTF-8 become U+FFFD. */
void timeline_text_quote(const char *string, struct buf *out);

/*
 * The rows of a timeline: one for each tensor of each process set, numbered from 1 in the order in
 * which they appear. Pure.
 *
 * A program may use another name in each step. So the table forgets all rows when it has
 * TIMELINE_ROWS_MAX; a tensor that appears again gets another number.
 */
#define TIMELINE_ROWS_MAX 65536

/* What is open in a row. */
enum row_state { ROW_IDLE, ROW_NEGOTIATES, ROW_OPERATES, ROW_ACTS /* within an operation */ };

struct timeline_row {
    int64_t number;
    enum row_state state;
    int32_t set; /* this and the name are the key */
    char name[];
};

/* An all-zero struct has none. */
struct timeline_rows {
    struct map by_key;
    char *key; /* the number of the set, and the name: room for the longest so far */
    size_t key_room;
    int64_t given; /* numbers */
};

void timeline_rows_destroy(struct timeline_rows *rows);

/* Finds the row of a tensor, or adds it: then `*is_new`. Valid until the next call. */
struct timeline_row *timeline_rows_get(struct timeline_rows *rows, int32_t set, const char *name,
                                       bool *is_new);
