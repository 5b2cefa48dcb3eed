/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/text_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define WIDTH_MAX 40 /* of a column */

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
    for (size_t column = 0; column < table->columns; column++) {
        const char *text = cell(table, row, column);
        size_t length = strlen(text);
        if (length > 0)
            buf_printf(out, "%*s%s", (int)pending, "", text);
        size_t fill = length < widths[column] ? widths[column] - length : 0;
        pending = length > 0 ? fill + 2 : pending + fill + 2;
    }
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
