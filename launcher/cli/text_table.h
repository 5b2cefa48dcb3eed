/* SPDX-License-Identifier: Apache-2.0 */
/* A table of texts with aligned columns. Pure. */
#pragma once

#include <stddef.h>

#include "base/buf.h"
#include "base/strv.h"

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
