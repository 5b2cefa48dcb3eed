/* SPDX-License-Identifier: Apache-2.0 */
#include "features/warm/fields.h"

#include <inttypes.h>
#include <string.h>

#include "base/parse.h"

void fields_put(struct buf *out, const char *text)
{
    buf_append(out, text, strlen(text) + 1);
}

void fields_put_number(struct buf *out, uint64_t number)
{
    buf_printf(out, "%" PRIu64, number);
    buf_putc(out, '\0');
}

void fields_put_all(struct buf *out, const struct strv *list)
{
    for (size_t i = 0; i < list->count; i++)
        fields_put(out, list->items[i]);
}

void fields_put_list(struct buf *out, const struct strv *list)
{
    fields_put_number(out, list->count);
    fields_put_all(out, list);
}

const char *fields_next(struct field_reader *fields)
{
    const char *field = fields->at;
    size_t left = (size_t)(fields->end - field);
    const char *nul = left == 0 ? NULL : memchr(field, '\0', left);
    fields->at = nul == NULL ? fields->end : nul + 1;
    return nul == NULL ? "" : field;
}

int64_t fields_next_number(struct field_reader *fields)
{
    int64_t number = -1;
    parse_int(fields_next(fields), 0, INT64_MAX, &number, NULL);
    return number;
}

void fields_next_list(struct field_reader *fields, struct strv *out)
{
    for (int64_t count = fields_next_number(fields); count > 0 && fields->at < fields->end; count--)
        strv_add(out, fields_next(fields));
}
