/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/control_ps.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "cli/control_client.h"
#include "cli/control_record.h"
#include "cli/control_show.h"
#include "cli/text_table.h"

#define DIAL_MS 1000
#define ANSWER_MS 2000 /* also for this */
#define CELL_MAX ((size_t)4096)
#define PROGRESS_COLUMN 6

struct row {
    json_t *facts; /* an answer or a record; NULL: there is none */
    int fd;        /* of a job that was asked; -1 */
};

static double number_of(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

/* What the record says is all that we know about a job that does not answer. */
static json_t *silent(int folder, const char *id)
{
    enum job_record_state state;
    json_t *facts = job_record_read(folder, id, &state);
    if (facts == NULL)
        return NULL;
    json_object_del(facts, "lines");
    json_object_set_new(facts, "state",
                        json_string(state == JOB_RECORD_ENDED ? "ended" : "no answer"));
    return facts;
}

static void ask_all(const struct job_list *list, struct row *rows, int64_t now_ms)
{
    json_t *request = json_pack("{s:s}", "do", "status");
    for (size_t i = 0; i < list->running.count; i++) {
        struct row *row = &rows[i];
        row->fd =
            control_client_dial_in(list->folder, list->running.items[i], now_ms + DIAL_MS, NULL);
        if (row->fd >= 0 && control_client_send(row->fd, request, now_ms + ANSWER_MS, NULL) < 0)
            fd_close(&row->fd);
    }
    json_decref(request);
}

static void take_answers(const struct job_list *list, struct row *rows, int64_t until_ms)
{
    for (size_t i = 0; i < list->running.count; i++) {
        struct row *row = &rows[i];
        if (row->fd >= 0)
            row->facts = control_client_receive(row->fd, until_ms, NULL);
        if (row->facts == NULL)
            row->facts = silent(list->folder, list->running.items[i]);
        fd_close(&row->fd);
    }
}

static json_t *over(int folder, const char *id)
{
    enum job_record_state state;
    struct buf text AUTO_BUF = BUF_INIT(CELL_MAX);
    json_t *facts = job_record_read(folder, id, &state);
    if (facts == NULL)
        return NULL;
    control_record_state(facts, state, &text);
    json_object_set_new(facts, "state", json_string(buf_text(&text)));
    json_object_del(facts, "report");
    return facts;
}

static int by_start(const void *a, const void *b)
{
    const struct row *first = a, *second = b;
    double one = number_of(first->facts, "started"), two = number_of(second->facts, "started");
    return (one > two) - (one < two);
}

static void add_cell(struct text_table *table, struct buf *cell)
{
    text_table_add(table, buf_text(cell));
    buf_clear(cell);
}

/* The size of a list, or a number that stands for it in a record. */
static long long count_of(const json_t *facts, const char *list, const char *number)
{
    const json_t *items = json_object_get(facts, list);
    return json_is_array(items) ? (long long)json_array_size(items)
                                : (long long)number_of(facts, number);
}

static void add_row(struct text_table *table, const json_t *facts, double now_s, bool progress)
{
    const json_t *last = json_object_get(facts, "last_output_s");
    struct buf cell AUTO_BUF = BUF_INIT(CELL_MAX);
    control_show_text(control_text_of(facts, "job", "?"), &cell);
    add_cell(table, &cell);
    control_show_text(control_text_of(facts, "state", "?"), &cell);
    add_cell(table, &cell);
    buf_printf(&cell, "%lld", (long long)number_of(facts, "size"));
    add_cell(table, &cell);
    buf_printf(&cell, "%lld", count_of(facts, "hosts", "host_count"));
    add_cell(table, &cell);
    control_show_duration(now_s - number_of(facts, "started"), &cell);
    add_cell(table, &cell);
    if (json_is_number(last))
        control_show_duration(json_number_value(last), &cell);
    else
        buf_putc(&cell, '-');
    add_cell(table, &cell);
    if (progress) {
        if (!control_show_percent(json_object_get(facts, "progress"), &cell))
            buf_putc(&cell, '-');
        add_cell(table, &cell);
    }
    control_show_text(control_text_of(facts, "command", "?"), &cell);
    add_cell(table, &cell);
}

/* Most jobs do not report any: then there is no column for it. */
static bool has_progress(const struct row *rows, size_t count)
{
    bool has = false;
    for (size_t i = 0; i < count; i++)
        has = has || json_object_get(rows[i].facts, "progress") != NULL;
    return has;
}

static void put_table(const struct row *rows, size_t count, struct buf *out)
{
    static const char *const titles[] = {"job", "state",       "ranks",    "hosts",
                                         "age", "last output", "progress", "command"};
    bool progress = has_progress(rows, count);
    size_t most = sizeof(titles) / sizeof(titles[0]);
    struct text_table table = {.columns = progress ? most : most - 1};
    double now_s = (double)clock_wall_ns() / 1e9;
    for (size_t i = 0; i < most; i++) {
        if (progress || i != PROGRESS_COLUMN)
            text_table_add(&table, titles[i]);
    }
    for (size_t i = 0; i < count; i++)
        add_row(&table, rows[i].facts, now_s, progress);
    text_table_print(&table, out);
    text_table_destroy(&table);
}

static int append_piece(const char *bytes, size_t length, void *out)
{
    return buf_append(out, bytes, length);
}

static void put_json(const struct row *rows, size_t count, struct buf *out)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append(list, rows[i].facts);
    json_dump_callback(list, append_piece, out, JSON_INDENT(2) | JSON_REAL_PRECISION(16));
    buf_putc(out, '\n');
    json_decref(list);
}

void control_ps(const struct job_list *list, bool all, bool json, struct buf *out)
{
    int64_t now_ms = clock_mono_ms();
    size_t asked = list->running.count, total = asked + (all ? list->over.count : 0), count = 0;
    struct row *rows AUTO_FREE = mem_array(total, sizeof(*rows));
    ask_all(list, rows, now_ms);
    take_answers(list, rows, now_ms + ANSWER_MS);
    for (size_t i = asked; i < total; i++)
        rows[i] = (struct row){over(list->folder, list->over.items[i - asked]), -1};
    for (size_t i = 0; i < total; i++) {
        if (rows[i].facts != NULL)
            rows[count++] = rows[i];
    }
    if (count > 1)
        qsort(rows, count, sizeof(*rows), by_start);
    if (json)
        put_json(rows, count, out);
    else
        put_table(rows, count, out);
    for (size_t i = 0; i < count; i++)
        json_decref(rows[i].facts);
}
