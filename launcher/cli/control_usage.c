/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/control_usage.h"

#include <math.h>
#include <string.h>

#include "cli/control_show.h"
#include "cli/text_table.h"
#include "driver/usage/usage_marks.h"

#define CELL_MAX ((size_t)4096)

static void put_share(double cpus, struct buf *out)
{
    buf_printf(out, "%.0f %%", cpus * 100);
}

static void put_count(double count, struct buf *out)
{
    buf_printf(out, "%.0f", count);
}

static void put_bytes(double bytes, struct buf *out)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    size_t unit = 0;
    for (; bytes >= 1000 && unit + 1 < sizeof(units) / sizeof(units[0]); unit++)
        bytes /= 1024;
    buf_printf(out, unit > 0 && bytes < 10 ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
}

static void put_percentage(double percent, struct buf *out)
{
    buf_printf(out, "%.0f %%", percent);
}

static void put_watts(double watts, struct buf *out)
{
    buf_printf(out, "%.0f W", watts);
}

static void put_progress(double percent, struct buf *out)
{
    buf_printf(out, "%.1f %%", percent);
}

/* The values of a rank. */
static const struct column {
    const char *key, *title;
    void (*put)(double value, struct buf *out);
    bool if_any; /* only if a rank has such a value */
} columns[] = {
    {"cpus", "cpu", put_share, false},
    {"resident_bytes", "memory", put_bytes, false},
    {"threads", "threads", put_count, false},
    {"processes", "processes", put_count, false},
    {"read_bytes", "read", put_bytes, false},
    {"written_bytes", "written", put_bytes, false},
    {"gpu_use_percent", "gpu", put_percentage, true},
    {"gpu_power_w", "gpu power", put_watts, true},
    {"gpu_memory_bytes", "gpu memory", put_bytes, true},
    {"last_output_s", "last output", control_show_duration, false},
    {"progress", "progress", put_progress, true},
};

#define COLUMNS (sizeof(columns) / sizeof(columns[0]))

static void add_cell(struct text_table *table, struct buf *cell)
{
    text_table_add(table, buf_text(cell));
    buf_clear(cell);
}

static void put_job(const json_t *usage, struct buf *out)
{
    size_t ranks = json_array_size(json_object_get(usage, "ranks"));
    size_t hosts = json_array_size(json_object_get(usage, "hosts"));
    control_show_text(control_text_of(usage, "job", "job"), out);
    buf_puts(out, ": ");
    control_show_text(control_text_of(usage, "state", "state unknown"), out);
    buf_printf(out, ", %zu rank%s on %zu host%s, up ", ranks, ranks == 1 ? "" : "s", hosts,
               hosts == 1 ? "" : "s");
    control_show_duration(usage_value(usage, "up_s"), out);
    buf_putc(out, '\n');
}

static void put_percent(const json_t *object, const char *key, struct buf *out)
{
    double percent = usage_value(object, key);
    if (isnan(percent))
        buf_putc(out, '-');
    else
        buf_printf(out, "%.0f %%", percent);
}

static void add_host(struct text_table *table, const json_t *host)
{
    static const char *const resources[] = {"cpu", "memory", "io"};
    struct buf cell AUTO_BUF = BUF_INIT(CELL_MAX);
    double load = usage_value(host, "load"), total = usage_value(host, "memory_bytes");
    double available = usage_value(host, "memory_available_bytes");
    text_table_add(table, "");
    control_show_text(control_text_of(host, "host", "?"), &cell);
    add_cell(table, &cell);
    buf_printf(&cell, isnan(load) ? "-" : "%.2f", load);
    add_cell(table, &cell);
    if (isnan(total) || isnan(available)) {
        buf_putc(&cell, '-');
    } else {
        put_bytes(total - available, &cell);
        buf_puts(&cell, " of ");
        put_bytes(total, &cell);
    }
    add_cell(table, &cell);
    for (size_t i = 0; i < sizeof(resources) / sizeof(resources[0]); i++) {
        put_percent(json_object_get(host, "pressure"), resources[i], &cell);
        add_cell(table, &cell);
    }
}

static void put_hosts(const json_t *hosts, struct buf *out)
{
    static const char *const titles[] = {"",          "host",         "load",    "memory",
                                         "cpu waits", "memory waits", "io waits"};
    struct text_table table = {.columns = sizeof(titles) / sizeof(titles[0])};
    for (size_t i = 0; i < table.columns; i++)
        text_table_add(&table, titles[i]);
    for (size_t i = 0; i < json_array_size(hosts); i++)
        add_host(&table, json_array_get(hosts, i));
    buf_putc(out, '\n');
    text_table_print(&table, out);
    text_table_destroy(&table);
}

static bool is_shown(const struct column *column, const json_t *ranks)
{
    bool found = !column->if_any;
    for (size_t i = 0; i < json_array_size(ranks) && !found; i++)
        found = !isnan(usage_value(json_array_get(ranks, i), column->key));
    return found;
}

static void add_rank(struct text_table *table, const json_t *rank, const bool *shown)
{
    struct buf cell AUTO_BUF = BUF_INIT(CELL_MAX);
    const json_t *marks = json_object_get(rank, "marks");
    if (json_object_size(marks) > 0)
        buf_putc(&cell, CONTROL_USAGE_MARK);
    add_cell(table, &cell);
    buf_printf(&cell, "%lld", (long long)json_integer_value(json_object_get(rank, "rank")));
    if (json_object_get(marks, "straggler") != NULL)
        buf_puts(&cell, " far behind");
    add_cell(table, &cell);
    control_show_text(control_text_of(rank, "host", "?"), &cell);
    add_cell(table, &cell);
    for (size_t i = 0; i < COLUMNS; i++) {
        if (!shown[i])
            continue;
        double value = usage_value(rank, columns[i].key);
        const char *mark = control_text_of(marks, columns[i].key, "");
        if (!shown[i])
            continue;
        if (isnan(value))
            buf_putc(&cell, '-');
        else
            columns[i].put(value, &cell);
        if (mark[0] != '\0')
            buf_puts(&cell, mark[0] == 'l' ? " <" : " >");
        add_cell(table, &cell);
    }
}

static void put_ranks(const json_t *ranks, struct buf *out)
{
    struct text_table table = {.columns = 3};
    bool shown[COLUMNS];
    for (size_t i = 0; i < COLUMNS; i++) {
        shown[i] = is_shown(&columns[i], ranks);
        table.columns += shown[i];
    }
    text_table_add(&table, "");
    text_table_add(&table, "rank");
    text_table_add(&table, "host");
    for (size_t i = 0; i < COLUMNS; i++) {
        if (shown[i])
            text_table_add(&table, columns[i].title);
    }
    for (size_t i = 0; i < json_array_size(ranks); i++)
        add_rank(&table, json_array_get(ranks, i), shown);
    buf_putc(out, '\n');
    text_table_print(&table, out);
    text_table_destroy(&table);
}

void control_usage_text(const json_t *usage, struct buf *out)
{
    put_job(usage, out);
    put_hosts(json_object_get(usage, "hosts"), out);
    put_ranks(json_object_get(usage, "ranks"), out);
}
