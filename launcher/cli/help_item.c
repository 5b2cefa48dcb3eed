/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/help_item.h"

#include <stdbool.h>
#include <string.h>

#define WIDTH 79
#define INDENT 28 /* where the explanations start */

/* Starts a line with the head. The explanation follows on this line, or below if there is no room.
 */
static size_t put_head(const char *head, struct buf *out)
{
    buf_printf(out, "  %s", head);
    size_t column = strlen(head) + 2;
    if (column + 2 > INDENT) {
        buf_putc(out, '\n');
        column = 0;
    }
    buf_printf(out, "%*s", (int)(INDENT - column), "");
    return INDENT;
}

/* Writes the words of `text` from `column` on, and breaks lines at blanks. Further lines begin at
 * `indent`. */
static void put_wrapped(const char *text, size_t column, size_t indent, struct buf *out)
{
    bool fresh = true;
    while (*text != '\0') {
        size_t length = strcspn(text, " ");
        if (!fresh && column + 1 + length > WIDTH) {
            buf_printf(out, "\n%*s", (int)indent, "");
            column = indent;
            fresh = true;
        }
        buf_printf(out, "%s%.*s", fresh ? "" : " ", (int)length, text);
        column += length + (fresh ? 0 : 1);
        fresh = false;
        text += length;
        text += strspn(text, " ");
    }
    buf_putc(out, '\n');
}

void help_item(const char *head, const char *text, struct buf *out)
{
    put_wrapped(text, put_head(head, out), INDENT, out);
}

void help_paragraph(const char *text, struct buf *out)
{
    put_wrapped(text, 0, 0, out);
}
