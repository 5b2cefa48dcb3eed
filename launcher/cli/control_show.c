/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/control_show.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/plain.h"

#define DAY_S ((long long)24 * 3600)

void control_show_text(const char *text, struct buf *out)
{
    char *plain AUTO_FREE = mem_strdup(text);
    plain_line(plain, '?');
    buf_puts(out, plain);
}

/* Bytes of the first `width` characters of valid UTF-8. */
static size_t prefix(const char *text, size_t width)
{
    size_t at = 0;
    while (text[at] != '\0') {
        bool begins = ((unsigned char)text[at] & 0xc0) != 0x80;
        if (begins && width-- == 0)
            break;
        at++;
    }
    return at;
}

void control_show_cut(const char *text, size_t width, struct buf *out)
{
    char *valid AUTO_FREE = mem_strdup(text);
    plain_valid(valid, strlen(valid));
    bool fits = valid[prefix(valid, width)] == '\0';
    if (!fits)
        valid[prefix(valid, width - 3)] = '\0';
    control_show_text(valid, out);
    if (!fits)
        buf_puts(out, "...");
}

void control_show_lines(const char *text, const char *margin, struct buf *out)
{
    while (*text != '\0') {
        size_t length = strcspn(text, "\n");
        char *line AUTO_FREE = mem_strndup(text, length);
        plain_text(line);
        buf_printf(out, "%s%s\n", margin, line);
        text += length + (text[length] == '\n');
    }
}

void control_show_job(const json_t *facts, struct buf *out)
{
    const char *name = control_text_of(facts, "name", "");
    control_show_text(control_text_of(facts, "job", "job"), out);
    if (name[0] == '\0')
        return;
    buf_puts(out, " (");
    control_show_text(name, out);
    buf_putc(out, ')');
}

void control_show_duration(double seconds, struct buf *out)
{
    double whole = seconds > 0 && seconds < 1e12 ? seconds : 0;
    long long left = (long long)(whole + 0.5);
    if (left < 60)
        buf_printf(out, "%lld s", left);
    else if (left < 3600)
        buf_printf(out, "%lld min %02lld s", left / 60, left % 60);
    else if (left < 2 * DAY_S)
        buf_printf(out, "%lld h %02lld min", left / 3600, left % 3600 / 60);
    else
        buf_printf(out, "%lld days", left / DAY_S);
}

void control_show_bytes(double bytes, struct buf *out)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    size_t unit = 0;
    for (; bytes >= 1000 && unit + 1 < sizeof(units) / sizeof(units[0]); unit++)
        bytes /= 1024;
    buf_printf(out, unit > 0 && bytes < 10 ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
}

bool control_show_percent(const json_t *progress, struct buf *out)
{
    const json_t *percent = json_object_get(progress, "percent");
    double value = json_number_value(percent);
    if (!json_is_number(percent) || !(value >= 0 && value <= 100))
        return false;
    buf_printf(out, "%.3g %%", value);
    return true;
}

/* The rank and the age of the report. */
static void put_source(const json_t *progress, struct buf *out)
{
    const json_t *rank = json_object_get(progress, "rank");
    const json_t *age = json_object_get(progress, "age_s");
    if (!json_is_integer(rank))
        return;
    buf_printf(out, " (rank %lld", (long long)json_integer_value(rank));
    if (json_is_number(age)) {
        buf_puts(out, ", ");
        control_show_duration(json_number_value(age), out);
        buf_puts(out, " ago");
    }
    buf_putc(out, ')');
}

static void put_metrics(json_t *metrics, struct buf *out)
{
    const char *name, *comma = "";
    json_t *value;
    json_object_foreach(metrics, name, value)
    {
        buf_puts(out, comma);
        control_show_text(name, out);
        buf_putc(out, ' ');
        if (json_is_number(value))
            buf_printf(out, "%.4g", json_number_value(value));
        else
            control_show_text(json_is_string(value) ? json_string_value(value) : "?", out);
        comma = ", ";
    }
}

void control_show_progress(const json_t *progress, struct buf *out)
{
    const json_t *eta = json_object_get(progress, "eta_s");
    json_t *metrics = json_object_get(progress, "metrics");
    const char *text = control_text_of(progress, "text", "");
    if (!json_is_object(progress))
        return;
    buf_puts(out, "progress: ");
    if (!control_show_percent(progress, out))
        buf_puts(out, "unknown");
    if (json_is_number(eta)) {
        buf_puts(out, ", ");
        control_show_duration(json_number_value(eta), out);
        buf_puts(out, " left");
    }
    buf_puts(out, text[0] != '\0' ? ", " : "");
    control_show_text(text, out);
    put_source(progress, out);
    buf_putc(out, '\n');
    if (json_object_size(metrics) == 0)
        return;
    buf_puts(out, "metrics: ");
    put_metrics(metrics, out);
    buf_putc(out, '\n');
}

const char *control_text_of(const json_t *object, const char *key, const char *otherwise)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text == NULL ? otherwise : text;
}

static int append_piece(const char *bytes, size_t length, void *out)
{
    return buf_append(out, bytes, length);
}

void control_show_json(const json_t *answer, struct buf *out)
{
    json_dump_callback(answer, append_piece, out, JSON_INDENT(2) | JSON_REAL_PRECISION(16));
    buf_putc(out, '\n');
}

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
