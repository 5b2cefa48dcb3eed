/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `hvdrun top`: what a job uses, once or live. It blocks, as control_client.h does. `usage` is the
 * answer of the job (usage_driver.h), of which nothing is taken for granted.
 */
#include <jansson.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "cli/control_client.h"
#include "cli/control_show.h"
#include "cli/features.h"
#include "cli/module/screen_module.h"
#include "cli/place.h"
#include "driver/control/folder.h"
#include "features/usage/usage_marks.h"
#include "features/usage/usage_test.h"
#include "io/module_open.h"

#define CONTROL_USAGE_MARK '*' /* begins the line of a rank that differs */

#define CELL_MAX ((size_t)4096)

/* The values of a rank. */
static const struct column {
    const char *key, *title;
    void (*put)(double value, struct buf *out); /* NULL: as a number */
    int places;                                 /* of the number, before the unit */
    double scale;
    const char *unit;
    bool if_any; /* only if a rank has such a value */
} columns[] = {
    /* the most important ones first: a narrow terminal does not show the last ones */
    {"cpus", "cpu", NULL, 0, 100, " %", false},
    {"last_output_s", "last output", control_show_duration, .if_any = false},
    {"progress", "progress", NULL, 1, 1, " %", true},
    {"resident_bytes", "memory", control_show_bytes, .if_any = false},
    {"gpu_use_percent", "gpu", NULL, 0, 1, " %", true},
    {"gpu_power_w", "gpu power", NULL, 0, 1, " W", true},
    {"gpu_memory_bytes", "gpu memory", control_show_bytes, .if_any = true},
    {"read_bytes", "read", control_show_bytes, .if_any = false},
    {"written_bytes", "written", control_show_bytes, .if_any = false},
    {"threads", "threads", NULL, 0, 1, "", false},
    {"processes", "processes", NULL, 0, 1, "", false},
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
    control_show_job(usage, out);
    buf_puts(out, ": ");
    control_show_text(control_text_of(usage, "state", "state unknown"), out);
    buf_printf(out, ", %zu rank%s on %zu host%s, up ", ranks, ranks == 1 ? "" : "s", hosts,
               hosts == 1 ? "" : "s");
    control_show_duration(usage_value(usage, "up_s"), out);
    buf_putc(out, '\n');
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
        control_show_bytes(total - available, &cell);
        buf_puts(&cell, " of ");
        control_show_bytes(total, &cell);
    }
    add_cell(table, &cell);
    for (size_t i = 0; i < sizeof(resources) / sizeof(resources[0]); i++) {
        double percent = usage_value(json_object_get(host, "pressure"), resources[i]);
        buf_printf(&cell, isnan(percent) ? "-" : "%.0f %%", percent);
        add_cell(table, &cell);
    }
}

static void put_hosts(const json_t *hosts, struct buf *out)
{
    static const char *const titles[] = {"",          "host",         "load",    "memory",
                                         "cpu waits", "memory waits", "io waits"};
    struct text_table table = {.columns = sizeof(titles) / sizeof(titles[0]), .right = ~3u};
    for (size_t i = 0; i < table.columns; i++)
        text_table_add(&table, titles[i]);
    for (size_t i = 0; i < json_array_size(hosts); i++)
        add_host(&table, json_array_get(hosts, i));
    text_table_print(&table, out);
    text_table_destroy(&table);
}

struct shown { /* a column, in this table */
    bool shown, marked;
};

static struct shown find_shown(const struct column *column, const json_t *ranks)
{
    struct shown found = {.shown = !column->if_any};
    for (size_t i = 0; i < json_array_size(ranks); i++) {
        const json_t *rank = json_array_get(ranks, i);
        found.shown |= !isnan(usage_value(rank, column->key));
        found.marked |= json_object_get(json_object_get(rank, "marks"), column->key) != NULL;
    }
    return found;
}

static void add_rank(struct text_table *table, const json_t *rank, const struct shown *shown)
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
        if (!shown[i].shown)
            continue;
        double value = usage_value(rank, columns[i].key);
        const char *mark = control_text_of(marks, columns[i].key, "");
        if (isnan(value))
            buf_puts(&cell, mark[0] == 'n' ? "none yet" : "-");
        else if (columns[i].put != NULL)
            columns[i].put(value, &cell);
        else
            buf_printf(&cell, "%.*f%s", columns[i].places, value * columns[i].scale,
                       columns[i].unit);
        if (mark[0] != '\0')
            buf_puts(&cell, mark[0] == 'm' ? " >" : " <");
        else if (shown[i].marked)
            buf_puts(&cell, "  "); /* so that the numbers stand below each other */
        add_cell(table, &cell);
    }
}

#define RANK_COLUMNS 3 /* the mark, the rank, the host */

static void put_ranks(const json_t *ranks, struct buf *out)
{
    struct text_table table = {.columns = RANK_COLUMNS, .right = 1u << 1};
    struct shown shown[COLUMNS];
    text_table_add(&table, "");
    text_table_add(&table, "rank");
    text_table_add(&table, "host");
    for (size_t i = 0; i < COLUMNS; i++) {
        shown[i] = find_shown(&columns[i], ranks);
        if (!shown[i].shown)
            continue;
        char *title AUTO_FREE = mem_printf("%s%s", columns[i].title, shown[i].marked ? "  " : "");
        text_table_add(&table, title);
        table.right |= 1u << table.columns++;
    }
    for (size_t i = 0; i < json_array_size(ranks); i++)
        add_rank(&table, json_array_get(ranks, i), shown);
    text_table_print(&table, out);
    text_table_destroy(&table);
}

void control_usage_text(const json_t *usage, struct buf *out)
{
    put_job(usage, out);
    buf_putc(out, '\n');
    put_ranks(json_object_get(usage, "ranks"), out);
    buf_putc(out, '\n');
    put_hosts(json_object_get(usage, "hosts"), out);
}

/* Orders that a user can choose, after that of the marks. */
static const struct {
    const char *name, *key;
} orders[] = {{"unusual first", NULL},
              {"by rank", "rank"},
              {"by cpu", "cpus"},
              {"by memory", "resident_bytes"},
              {"by silence", "last_output_s"}};

#define ORDERS (sizeof(orders) / sizeof(orders[0]))

const char *control_usage_order_name(size_t order)
{
    return orders[order % ORDERS].name;
}

struct placed {
    json_t *rank;
    double value;
};

static int by_value(const void *a, const void *b)
{
    const struct placed *one = a, *two = b;
    return (one->value > two->value) - (one->value < two->value);
}

void control_usage_sort(json_t *usage, size_t order)
{
    const char *key = orders[order % ORDERS].key;
    const json_t *ranks = json_object_get(usage, "ranks");
    size_t count = key == NULL ? 0 : json_array_size(ranks);
    struct placed *placed AUTO_FREE = mem_array(count + 1, sizeof(*placed));
    json_t *sorted = json_array();
    for (size_t i = 0; i < count; i++) {
        placed[i].rank = json_array_get(ranks, i);
        double value = usage_value(placed[i].rank, key);
        bool upward = strcmp(key, "rank") == 0;
        placed[i].value = isnan(value) ? INFINITY : upward ? value : -value;
    }
    if (count > 1)
        qsort(placed, count, sizeof(*placed), by_value);
    for (size_t i = 0; i < count; i++)
        json_array_append(sorted, placed[i].rank);
    if (count > 0)
        json_object_set(usage, "ranks", sorted);
    json_decref(sorted);
}

/* The command. */

#define TEXT_MAX ((size_t)64 << 20)
#define PERIOD_MS 2000  /* of the live table */
#define BETWEEN_MS 1000 /* two samples, for what the ranks use between them */
#define LOOK_MS 20      /* a round of the agents takes some milliseconds */

static json_t *ask(int fd, struct error *err)
{
    return control_client_ask(fd, json_pack("{s:s}", "do", "usage"), err);
}

/* The first question makes the job ask its agents; then we wait for what they say. The job limits
 * the time of that. */
static json_t *ask_anew(int fd, struct error *err)
{
    json_t *usage = ask(fd, err);
    for (bool again = true; again && usage != NULL;) {
        json_decref(usage);
        poll(NULL, 0, LOOK_MS);
        usage = ask(fd, err);
        again = json_is_true(json_object_get(usage, "sampling"));
    }
    return usage;
}

static int show_once(int fd, const struct control_words *words, struct buf *out, struct error *err)
{
    json_t *usage = ask_anew(fd, err);
    if (usage == NULL)
        return -1;
    json_decref(usage);
    poll(NULL, 0, BETWEEN_MS);
    usage = ask_anew(fd, err);
    if (usage == NULL)
        return -1;
    usage_marks_set(usage);
    if (words->json)
        control_show_json(usage, out);
    else
        control_usage_text(usage, out);
    json_decref(usage);
    return 0;
}

static const struct screen_module *open_module(struct error *err)
{
    char *folder AUTO_FREE = place_modules();
    char *path AUTO_FREE = mem_printf("%s/hvdrun-screen.so", folder);
    return module_open(path, SCREEN_MODULE_KIND, err);
}

/* Until a key is pressed, or for a period. */
static enum screen_key show(json_t *usage, size_t order, const struct screen_module *module,
                            struct screen *screen)
{
    struct buf title AUTO_BUF = BUF_INIT(TEXT_MAX), ranks AUTO_BUF = BUF_INIT(TEXT_MAX),
                     hosts AUTO_BUF = BUF_INIT(TEXT_MAX);
    json_t *sorted = json_copy(usage);
    control_usage_sort(sorted, order);
    put_job(sorted, &title);
    put_ranks(json_object_get(sorted, "ranks"), &ranks);
    put_hosts(json_object_get(sorted, "hosts"), &hosts);
    json_decref(sorted);
    const struct screen_view tables[] = {{"ranks", buf_text(&ranks)}, {"hosts", buf_text(&hosts)}};
    return module->show(screen, buf_text(&title), tables, control_usage_order_name(order),
                        CONTROL_USAGE_MARK, PERIOD_MS);
}

/* Until the user leaves: 0. -1: the job does not answer. */
static int show_all(int fd, const struct screen_module *module, struct screen *screen,
                    struct error *err)
{
    enum screen_key key = SCREEN_NONE;
    size_t order = 0;
    while (key != SCREEN_LEAVES) {
        json_t *usage = ask_anew(fd, err);
        if (usage == NULL)
            return -1;
        usage_marks_set(usage);
        do {
            key = show(usage, order, module, screen);
            order += key == SCREEN_SORT;
        } while (key == SCREEN_SORT);
        json_decref(usage);
    }
    return 0;
}

static int show_live(int fd, struct error *err)
{
    if (isatty(STDIN_FILENO) == 0 || isatty(STDOUT_FILENO) == 0)
        return error_usage(err, "top needs a terminal; use 'hvdrun top --once', or --once --json");
    const struct screen_module *module = open_module(err);
    if (module == NULL)
        return -1;
    struct screen *screen = module->open();
    if (screen == NULL)
        return error_set(err, "cannot use this terminal; is TERM right? 'hvdrun top --once' works");
    int result = show_all(fd, module, screen, err);
    module->close(screen);
    return result;
}

/* With --once, the text or JSON goes to `out`. Else it shows a live table on the terminal until the
 * user leaves or the job ends. */
int control_top(const struct job_list *list, const struct control_words *words, struct buf *out,
                struct error *err)
{
    if (words->json && !words->once)
        return error_usage(err, "top: --json needs --once");
    int fd AUTO_FD = control_client_dial(list, words->job, err);
    if (fd < 0)
        return -1;
    bool is_path = words->job != NULL && strchr(words->job, '/') != NULL;
    char *id AUTO_FREE = mem_strdup(is_path ? NULL : job_list_find(list, words->job, false, NULL));
    int result = words->once ? show_once(fd, words, out, err) : show_live(fd, err);
    if (result < 0 && id != NULL && err->status == 0 && !job_folder_runs(list->folder, id))
        return error_set(err, "job %s has ended; 'hvdrun status %s' says how", id, id);
    return result;
}
