/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/control.h"

#include <jansson.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "cli/control_client.h"
#include "cli/control_show.h"

#define DIAL_MS 1000
#define ANSWER_MS 2000 /* also for this */
#define CELL_MAX ((size_t)4096)

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
    for (size_t i = 0; i < list->running.count; i++) {
        struct row *row = &rows[i];
        row->fd = control_client_dial_in(list, list->running.items[i], now_ms + DIAL_MS, NULL);
        json_t *request = json_pack("{s:s, s:i}", "do", "status", "protocol", 1);
        if (control_client_send(row->fd, request, now_ms + ANSWER_MS, NULL) < 0)
            fd_close(&row->fd);
    }
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

/* The size of a list, or a number that stands for it in a record. */
static long long count_of(const json_t *facts, const char *list, const char *number)
{
    const json_t *items = json_object_get(facts, list);
    return json_is_array(items) ? (long long)json_array_size(items)
                                : (long long)number_of(facts, number);
}

enum column { JOB, USER, NAME, STATE, RANKS, HOSTS, AGE, OUTPUT, PROGRESS, COMMAND, COLUMNS };

static const struct {
    const char *title, *key;
    const char *otherwise; /* for a value that is missing or wrong; NULL: it counts as 0 */
    bool rare;             /* most jobs do not have it: then there is no column for it */
} columns[COLUMNS] = {
    [JOB] = {"job", "job", "?", false},
    [USER] = {"user", "user", "-", true},
    [NAME] = {"name", "name", "-", true},
    [STATE] = {"state", "state", "?", false},
    [RANKS] = {"ranks", "size", NULL, false},
    [HOSTS] = {"hosts", "hosts", NULL, false},
    [AGE] = {"age", "started", "-", false},
    [OUTPUT] = {"last output", "last_output_s", "-", false},
    [PROGRESS] = {"progress", "progress", "-", true},
    [COMMAND] = {"command", "command", "?", false},
};

static void add_cell(struct text_table *table, enum column column, const json_t *facts,
                     double now_s)
{
    const json_t *value = json_object_get(facts, columns[column].key);
    bool is_text = (column < RANKS || column == COMMAND) && json_is_string(value);
    struct buf cell AUTO_BUF = BUF_INIT(CELL_MAX);
    if (column == RANKS)
        buf_printf(&cell, "%lld", (long long)json_number_value(value));
    else if (column == HOSTS)
        buf_printf(&cell, "%lld", count_of(facts, "hosts", "host_count"));
    else if (column == AGE && json_is_number(value))
        control_show_duration(now_s - json_number_value(value), &cell);
    else if (column == OUTPUT && json_is_number(value))
        control_show_duration(json_number_value(value), &cell);
    else if (column != PROGRESS || !control_show_percent(value, &cell))
        control_show_text(is_text ? json_string_value(value) : columns[column].otherwise, &cell);
    text_table_add(table, buf_text(&cell));
}

static bool any_has(const struct row *rows, size_t count, const char *key)
{
    bool has = false;
    for (size_t i = 0; i < count; i++)
        has = has || json_object_get(rows[i].facts, key) != NULL;
    return has;
}

static void put_table(const struct row *rows, size_t count, size_t width, struct buf *out)
{
    struct text_table table = {.width = width};
    double now_s = (double)clock_wall_ns() / 1e9;
    enum column shown[COLUMNS];
    for (int i = 0; i < COLUMNS; i++) {
        if (columns[i].rare && !any_has(rows, count, columns[i].key))
            continue;
        shown[table.columns++] = (enum column)i;
        text_table_add(&table, columns[i].title);
    }
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < table.columns; k++)
            add_cell(&table, shown[k], rows[i].facts, now_s);
    }
    text_table_print(&table, out);
    text_table_destroy(&table);
}

static void put_json(const struct row *rows, size_t count, struct buf *out)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append(list, rows[i].facts);
    control_show_json(list, out);
    json_decref(list);
}

/* What is known of all jobs. */
struct gathered {
    struct row *rows;
    size_t count;
    bool all;              /* also those that have ended */
    const char *slurm_job; /* NULL: in any */
};

/* `user`: NULL if only one user's jobs are shown. */
static void gather(struct gathered *gathered, const struct job_list *list, const char *user)
{
    int64_t now_ms = clock_mono_ms();
    size_t asked = list->running.count, total = asked + (gathered->all ? list->over.count : 0);
    gathered->rows =
        mem_resize_array(gathered->rows, gathered->count + total + 1, sizeof(*gathered->rows));
    struct row *rows = gathered->rows + gathered->count;
    memset(rows, 0, total * sizeof(*rows));
    ask_all(list, rows, now_ms);
    take_answers(list, rows, now_ms + ANSWER_MS);
    for (size_t i = asked; i < total; i++)
        rows[i] = (struct row){over(list->folder, list->over.items[i - asked]), -1};
    for (size_t i = 0; i < total; i++) {
        if (rows[i].facts == NULL)
            continue;
        if (user != NULL)
            json_object_set_new(rows[i].facts, "user", json_string(user));
        gathered->rows[gathered->count++] = rows[i];
    }
}

static bool gather_user(void *context, const char *path, const char *user)
{
    struct gathered *gathered = context;
    struct job_list list;
    job_list_read_at(path, gathered->slurm_job, &list);
    gather(gathered, &list, user);
    job_list_destroy(&list);
    return false;
}

static void put_jobs(const struct job_list *list, const struct job_lists *more,
                     const struct control_words *words, size_t width, struct buf *out)
{
    struct gathered gathered = {.all = words->all, .slurm_job = words->slurm_job};
    const struct passwd *me = words->all_users ? getpwuid(geteuid()) : NULL;
    const char *user = !words->all_users ? NULL : me != NULL ? me->pw_name : "?";
    gather(&gathered, list, user);
    for (size_t i = 0; i < more->count; i++)
        gather(&gathered, &more->items[i], user);
    if (words->all_users)
        job_list_others(gather_user, &gathered);
    if (gathered.count > 1)
        qsort(gathered.rows, gathered.count, sizeof(*gathered.rows), by_start);
    if (words->json)
        put_json(gathered.rows, gathered.count, out);
    else
        put_table(gathered.rows, gathered.count, width, out);
    for (size_t i = 0; i < gathered.count; i++)
        json_decref(gathered.rows[i].facts);
    free(gathered.rows);
}

/* For scripts and completions: asks no job. */
static void put_some(const struct job_list *list, const struct strv *ids, bool names,
                     struct buf *out)
{
    for (size_t i = 0; i < ids->count; i++) {
        char *name AUTO_FREE = names ? job_list_name(list, ids->items[i]) : NULL;
        buf_printf(out, "%s\n", ids->items[i]);
        if (name != NULL)
            buf_printf(out, "%s\n", name);
    }
}

static void put_ids(const struct job_list *list, const struct control_words *words, struct buf *out)
{
    put_some(list, &list->running, words->names, out);
    if (words->all)
        put_some(list, &list->over, words->names, out);
}

void control_ps(const struct job_list *list, const struct job_lists *more,
                const struct control_words *words, size_t width, struct buf *out)
{
    if (!words->quiet) {
        put_jobs(list, more, words, width, out);
        return;
    }
    put_ids(list, words, out);
    for (size_t i = 0; i < more->count; i++)
        put_ids(&more->items[i], words, out);
}
