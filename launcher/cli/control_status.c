/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/control_status.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/mem.h"

#define CELL_MAX ((size_t)1 << 20)
#define COLUMN_MAX 40 /* a longer cell moves the cells after it to the right */

/* Text from outside must not control the terminal. */
static void put_safe(struct buf *out, const char *text)
{
    char *plain AUTO_FREE = mem_strdup(text);
    log_make_plain(plain);
    for (const char *at = plain; *at != '\0'; at++)
        buf_putc(out, *at == '\n' || *at == '\t' ? '?' : *at);
}

static const char *text_of(const json_t *object, const char *key, const char *otherwise)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text == NULL ? otherwise : text;
}

static void put_duration(struct buf *out, double seconds)
{
    double whole = seconds > 0 && seconds < 1e12 ? seconds : 0;
    long long left = (long long)(whole + 0.5);
    if (left < 60)
        buf_printf(out, "%lld s", left);
    else if (left < 3600)
        buf_printf(out, "%lld min %02lld s", left / 60, left % 60);
    else
        buf_printf(out, "%lld h %02lld min", left / 3600, left % 3600 / 60);
}

/* Appends the numbers 0, 1, 2, 5 as "0-2,5". */
static void put_ranks(struct buf *out, const json_t *ranks)
{
    size_t count = json_array_size(ranks);
    for (size_t i = 0; i < count;) {
        json_int_t first = json_integer_value(json_array_get(ranks, i)), last = first;
        const char *comma = i > 0 ? "," : "";
        for (i++; i < count && json_integer_value(json_array_get(ranks, i)) == last + 1; i++)
            last++;
        if (first == last)
            buf_printf(out, "%s%lld", comma, (long long)first);
        else
            buf_printf(out, "%s%lld-%lld", comma, (long long)first, (long long)last);
    }
    if (count == 0)
        buf_putc(out, '-');
}

static void put_notes(struct buf *out, const json_t *host)
{
    const json_t *drain = json_object_get(host, "drain_s");
    const json_t *blacklisted = json_object_get(host, "blacklisted_s");
    const char *comma = "";
    if (json_is_true(json_object_get(host, "spare"))) {
        buf_puts(out, "spare");
        comma = ", ";
    }
    if (json_is_number(drain)) {
        buf_printf(out, "%sleaves within ", comma);
        put_duration(out, json_number_value(drain));
        comma = ", ";
    }
    if (blacklisted == NULL)
        return;
    buf_printf(out, "%sblacklisted for ", comma);
    if (json_is_number(blacklisted))
        put_duration(out, json_number_value(blacklisted));
    else
        buf_puts(out, "the rest of the job");
}

static void put_job(struct buf *out, const json_t *status)
{
    const json_t *hosts = json_object_get(status, "hosts");
    const json_t *epoch = json_object_get(status, "epoch"), *size = json_object_get(status, "size");
    const json_t *up = json_object_get(status, "up_s");
    size_t used = 0;
    for (size_t i = 0; i < json_array_size(hosts); i++)
        used += json_array_size(json_object_get(json_array_get(hosts, i), "ranks")) > 0;
    put_safe(out, text_of(status, "job", "job"));
    buf_puts(out, ": ");
    put_safe(out, text_of(status, "state", "state unknown"));
    if (json_is_integer(epoch))
        buf_printf(out, ", epoch %lld", (long long)json_integer_value(epoch));
    if (json_is_integer(size) && json_integer_value(size) > 0) {
        long long ranks = (long long)json_integer_value(size);
        buf_printf(out, ", %lld rank%s", ranks, ranks == 1 ? "" : "s");
        if (used > 0)
            buf_printf(out, " on %zu host%s", used, used == 1 ? "" : "s");
    }
    if (json_is_number(up)) {
        buf_puts(out, ", up ");
        put_duration(out, json_number_value(up));
    }
    buf_putc(out, '\n');
}

enum column { HOST, STATE, SLOTS, RANKS, NOTES, COLUMNS };

static const char *const titles[COLUMNS] = {"host", "state", "slots", "ranks", ""};

/* Appends one cell. `host` is NULL: the title of the column. */
static void put_cell(struct buf *out, const json_t *host, enum column column)
{
    const json_t *slots = json_object_get(host, "slots");
    if (host == NULL) {
        buf_puts(out, titles[column]);
        return;
    }
    switch (column) {
    case HOST: put_safe(out, text_of(host, "host", "?")); break;
    case STATE: put_safe(out, text_of(host, "state", "?")); break;
    case SLOTS:
        if (json_is_integer(slots))
            buf_printf(out, "%lld", (long long)json_integer_value(slots));
        else
            buf_putc(out, '?');
        break;
    case RANKS: put_ranks(out, json_object_get(host, "ranks")); break;
    case NOTES: put_notes(out, host); break;
    case COLUMNS: break;
    }
}

static void put_row(struct buf *out, const json_t *host, const size_t *widths)
{
    size_t pending = 0; /* blanks before the next cell that is not empty */
    for (int column = 0; column < COLUMNS; column++) {
        struct buf cell AUTO_BUF = BUF_INIT(CELL_MAX);
        put_cell(&cell, host, (enum column)column);
        if (cell.length > 0)
            buf_printf(out, "%*s%s", (int)pending, "", buf_text(&cell));
        size_t fill = cell.length < widths[column] ? widths[column] - cell.length : 0;
        pending = cell.length > 0 ? fill + 2 : pending + fill + 2;
    }
    buf_putc(out, '\n');
}

static void put_hosts(struct buf *out, const json_t *hosts)
{
    size_t count = json_array_size(hosts);
    size_t widths[COLUMNS] = {0};
    for (size_t row = 0; row <= count; row++) {
        for (int column = 0; column < COLUMNS; column++) {
            struct buf cell AUTO_BUF = BUF_INIT(CELL_MAX);
            put_cell(&cell, row == 0 ? NULL : json_array_get(hosts, row - 1), (enum column)column);
            if (cell.length > widths[column] && cell.length <= COLUMN_MAX)
                widths[column] = cell.length;
        }
    }
    if (count == 0)
        return;
    buf_putc(out, '\n');
    for (size_t row = 0; row <= count; row++)
        put_row(out, row == 0 ? NULL : json_array_get(hosts, row - 1), widths);
}

static void put_events(struct buf *out, const json_t *events)
{
    if (json_array_size(events) > 0)
        buf_putc(out, '\n');
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *event = json_array_get(events, i), *when = json_object_get(event, "time");
        double seconds = json_number_value(when);
        time_t at = seconds > 0 && seconds < 1e12 ? (time_t)seconds : 0;
        char text[32] = "--:--:--";
        struct tm day;
        if (json_is_number(when) && localtime_r(&at, &day) != NULL)
            strftime(text, sizeof(text), "%H:%M:%S", &day);
        buf_printf(out, "%s  ", text);
        put_safe(out, text_of(event, "text", "?"));
        buf_putc(out, '\n');
    }
}

/* What the job waits for, as the workers report it. */
static void put_stalls(struct buf *out, const json_t *stalls)
{
    if (json_array_size(stalls) > 0)
        buf_putc(out, '\n');
    for (size_t i = 0; i < json_array_size(stalls); i++) {
        const char *line = json_string_value(json_array_get(stalls, i));
        put_safe(out, line != NULL ? line : "?");
        buf_putc(out, '\n');
    }
}

void control_status_text(const json_t *status, struct buf *out)
{
    put_job(out, status);
    put_hosts(out, json_object_get(status, "hosts"));
    put_stalls(out, json_object_get(status, "stalls"));
    put_events(out, json_object_get(status, "events"));
}
