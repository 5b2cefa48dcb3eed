/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/text_table.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/control_show.h"

#define WIDTH_MAX 40 /* of a column */
#define LAST_MIN 12  /* characters of the last cell, even if the line does not have them */

void text_table_add(struct text_table *table, const char *text)
{
    strv_add(&table->cells, text);
}

static const char *cell(const struct text_table *table, size_t row, size_t column)
{
    return table->cells.items[row * table->columns + column];
}

static void print_row(const struct text_table *table, size_t row, const size_t *widths,
                      struct buf *out)
{
    size_t pending = 0; /* blanks before the next cell that is not empty */
    size_t start = out->length;
    for (size_t column = 0; column < table->columns; column++) {
        const char *text = cell(table, row, column);
        size_t length = strlen(text), used = out->length - start + pending;
        size_t left = table->width > used ? table->width - used : 0;
        size_t fill = length < widths[column] ? widths[column] - length : 0;
        bool right = (table->right & 1u << column) != 0;
        if (length > 0)
            buf_printf(out, "%*s", (int)(pending + (right ? fill : 0)), "");
        if (table->width > 0 && column + 1 == table->columns)
            control_show_cut(text, left > LAST_MIN ? left : LAST_MIN, out);
        else
            buf_puts(out, text);
        pending = length > 0 ? (right ? 0 : fill) + 2 : pending + fill + 2;
    }
    while (out->length > start && buf_text(out)[out->length - 1] == ' ')
        buf_truncate(out, out->length - 1);
    buf_putc(out, '\n');
}

void text_table_print(const struct text_table *table, struct buf *out)
{
    size_t rows = table->cells.count / table->columns;
    size_t *widths AUTO_FREE = mem_array(table->columns, sizeof(*widths));
    for (size_t row = 0; row < rows; row++) {
        for (size_t column = 0; column < table->columns; column++) {
            size_t length = strlen(cell(table, row, column));
            if (length > widths[column] && length <= WIDTH_MAX)
                widths[column] = length;
        }
    }
    for (size_t row = 0; row < rows; row++)
        print_row(table, row, widths, out);
}

void text_table_destroy(struct text_table *table)
{
    strv_destroy(&table->cells);
}
