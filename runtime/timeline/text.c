/* SPDX-License-Identifier: Apache-2.0 */
#include "timeline/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/plain.h"
#include "timeline/text_test.h"

void timeline_rows_destroy(struct timeline_rows *rows)
{
    map_clear(&rows->by_key, free);
    free(rows->key);
}

static struct map_key key_of(struct timeline_rows *rows, int32_t set, const char *name,
                             size_t length)
{
    if (sizeof(set) + length > rows->key_room) {
        rows->key_room = 2 * (sizeof(set) + length);
        rows->key = mem_resize(rows->key, rows->key_room);
    }
    memcpy(rows->key, &set, sizeof(set));
    memcpy(rows->key + sizeof(set), name, length);
    return map_bytes(rows->key, sizeof(set) + length);
}

struct timeline_row *timeline_rows_get(struct timeline_rows *rows, int32_t set, const char *name,
                                       bool *is_new)
{
    size_t length = strlen(name);
    struct map_key key = key_of(rows, set, name, length);
    struct timeline_row *row = map_get(&rows->by_key, key);
    *is_new = row == NULL;
    if (row != NULL)
        return row;
    if (rows->by_key.count == TIMELINE_ROWS_MAX)
        map_clear(&rows->by_key, free);
    row = mem_alloc(sizeof(*row) + length + 1);
    row->number = ++rows->given;
    row->set = set;
    memcpy(row->name, name, length);
    key.bytes = &row->set;
    map_put(&rows->by_key, key, row);
    return row;
}

#define WORD_MAX 64 /* bytes of an operation's or activity's name */

struct timeline_text {
    int64_t origin_ns;
    struct timeline_rows rows;
};

struct timeline_text *timeline_text_create(int64_t origin_ns)
{
    return MEM_NEW((struct timeline_text){.origin_ns = origin_ns});
}

void timeline_text_destroy(struct timeline_text *text)
{
    if (text == NULL)
        return;
    timeline_rows_destroy(&text->rows);
    free(text);
}

/* Strings */

void timeline_text_quote(const char *string, struct buf *out)
{
    const uint8_t *at = (const uint8_t *)string;
    buf_putc(out, '"');
    while (*at != '\0') {
        size_t length = plain_character((const char *)at, strnlen((const char *)at, 4));
        if (length == 0)
            buf_puts(out, "\\ufffd");
        else if (*at < 0x20 || *at == 0x7f)
            buf_printf(out, "\\u%04x", *at);
        else if (*at == '"' || *at == '\\')
            buf_printf(out, "\\%c", *at);
        else
            buf_append(out, at, length);
        at += length > 0 ? length : 1;
    }
    buf_putc(out, '"');
}

/* Objects. Each function leaves the object open for further members. */

static int64_t micros(const struct timeline_text *text, int64_t time_ns)
{
    return (time_ns - text->origin_ns) / 1000;
}

static void put_event(const struct timeline_text *text, const struct timeline_row *row,
                      const char *phase, int64_t time_ns, struct buf *out)
{
    buf_printf(out, ",\n{\"ph\": \"%s\", \"ts\": %" PRId64 ", \"pid\": %" PRId64, phase,
               micros(text, time_ns), row->number);
}

static void put_begin(const struct timeline_text *text, const struct timeline_row *row,
                      const char *name, int64_t time_ns, struct buf *out)
{
    put_event(text, row, "B", time_ns, out);
    buf_puts(out, ", \"name\": ");
    timeline_text_quote(name, out);
    buf_puts(out, "}");
}

static void put_end(const struct timeline_text *text, const struct timeline_row *row,
                    int64_t time_ns, struct buf *out)
{
    put_event(text, row, "E", time_ns, out);
    buf_puts(out, "}");
}

static void put_row(const struct timeline_row *row, struct buf *out)
{
    buf_printf(out, ",\n{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": %" PRId64 ", ",
               row->number);
    buf_puts(out, "\"args\": {\"name\": ");
    timeline_text_quote(row->name, out);
    buf_printf(out,
               "}},\n{\"name\": \"process_sort_index\", \"ph\": \"M\", \"pid\": %" PRId64
               ", \"args\": {\"sort_index\": %" PRId64 "}}",
               row->number, row->number);
}

void timeline_text_head(const struct timeline_text *text, int64_t wall_us, struct buf *out)
{
    (void)text;
    buf_printf(out,
               "{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": 0, \"args\": "
               "{\"start_time_since_epoch_in_micros\": %" PRId64 "}},\n",
               wall_us);
    buf_puts(out, "{\"name\": \"process_sort_index\", \"ph\": \"M\", \"pid\": 0, \"args\": "
                  "{\"sort_index\": 0}}");
}

static void put_mark(const struct timeline_text *text, const char *name, int64_t time_ns,
                     struct buf *out)
{
    buf_printf(out, ",\n{\"ph\": \"i\", \"name\": \"%s\", \"ts\": %" PRId64 ", \"s\": \"g\"}", name,
               micros(text, time_ns));
}

void timeline_text_gap(const struct timeline_text *text, uint64_t missing, int64_t time_ns,
                       struct buf *out)
{
    char name[64];
    snprintf(name, sizeof(name), "%" PRIu64 " EVENTS ARE MISSING", missing);
    put_mark(text, name, time_ns, out);
}

/* Events */

/* Ends what is open in the row down to `wanted`. */
static void unwind(const struct timeline_text *text, struct timeline_row *row,
                   enum row_state wanted, int64_t time_ns, struct buf *out)
{
    for (; row->state > wanted && row->state != ROW_IDLE;
         row->state = row->state == ROW_ACTS ? ROW_OPERATES : ROW_IDLE)
        put_end(text, row, time_ns, out);
}

static void upper(const char *prefix, const char *word, char out[WORD_MAX])
{
    snprintf(out, WORD_MAX, "%s%s", prefix, word == NULL ? "" : word);
    for (char *at = out; *at != '\0'; at++)
        *at = *at >= 'a' && *at <= 'z' ? (char)(*at - 'a' + 'A') : *at;
}

static void begin(const struct timeline_text *text, struct timeline_row *row,
                  const struct trace_event *event, enum row_state state, struct buf *out)
{
    char name[WORD_MAX];
    upper(state == ROW_NEGOTIATES ? "NEGOTIATE_" : "", event->what, name);
    unwind(text, row, ROW_IDLE, event->time_ns, out);
    put_begin(text, row, name, event->time_ns, out);
    row->state = state;
}

static void put_ready(const struct timeline_text *text, const struct timeline_row *row,
                      const struct trace_event *event, struct buf *out)
{
    if (row->state != ROW_NEGOTIATES)
        return;
    put_event(text, row, "X", event->time_ns, out);
    buf_printf(out, ", \"name\": \"%d\", \"dur\": 0}", event->rank);
}

static void put_operation_end(const struct timeline_text *text, struct timeline_row *row,
                              const struct trace_event *event, struct buf *out)
{
    unwind(text, row, ROW_OPERATES, event->time_ns, out);
    if (row->state != ROW_OPERATES)
        return;
    row->state = ROW_IDLE;
    put_event(text, row, "E", event->time_ns, out);
    if (event->type != NULL) {
        buf_puts(out, ", \"args\": {\"dtype\": ");
        timeline_text_quote(event->type, out);
        buf_puts(out, ", \"shape\": \"[");
        for (int32_t i = 0; i < event->dims; i++)
            buf_printf(out, "%s%" PRId64, i > 0 ? ", " : "", event->shape[i]);
        buf_puts(out, "]\"}");
    }
    buf_puts(out, "}");
}

static void put_activity(const struct timeline_text *text, struct timeline_row *row,
                         const struct trace_event *event, struct buf *out)
{
    char name[WORD_MAX];
    unwind(text, row, ROW_OPERATES, event->time_ns, out);
    if (row->state != ROW_OPERATES)
        return;
    upper("", event->what, name);
    put_begin(text, row, name, event->time_ns, out);
    row->state = ROW_ACTS;
}

/* Ends `state`, if the row is in it. */
static void end(const struct timeline_text *text, struct timeline_row *row, enum row_state state,
                int64_t time_ns, struct buf *out)
{
    if (row->state == state)
        unwind(text, row, state == ROW_ACTS ? ROW_OPERATES : ROW_IDLE, time_ns, out);
}

static void put_in_row(const struct timeline_text *text, struct timeline_row *row,
                       const struct trace_event *event, struct buf *out)
{
    switch (event->kind) {
    case TRACE_NEGOTIATE_BEGIN: begin(text, row, event, ROW_NEGOTIATES, out); break;
    case TRACE_RANK_READY: put_ready(text, row, event, out); break;
    case TRACE_NEGOTIATE_END: end(text, row, ROW_NEGOTIATES, event->time_ns, out); break;
    case TRACE_OPERATION_BEGIN: begin(text, row, event, ROW_OPERATES, out); break;
    case TRACE_ACTIVITY_BEGIN: put_activity(text, row, event, out); break;
    case TRACE_ACTIVITY_END: end(text, row, ROW_ACTS, event->time_ns, out); break;
    case TRACE_OPERATION_END: put_operation_end(text, row, event, out); break;
    case TRACE_CYCLE: break;
    }
}

void timeline_text_event(struct timeline_text *text, const struct trace_event *event,
                         struct buf *out)
{
    bool is_new = false;
    if (event->kind == TRACE_CYCLE) {
        put_mark(text, "CYCLE_START", event->time_ns, out);
        return;
    }
    if (event->tensor == NULL)
        return;
    struct timeline_row *row = timeline_rows_get(&text->rows, event->set, event->tensor, &is_new);
    if (is_new)
        put_row(row, out);
    put_in_row(text, row, event, out);
}
