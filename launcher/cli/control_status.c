/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/control.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "cli/control_show.h"
#include "driver/control/record.h"

#define CELL_MAX ((size_t)1 << 20)

static long long integer_of(const json_t *object, const char *key)
{
    return (long long)json_integer_value(json_object_get(object, key));
}

static double number_of(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

/* A line, or nothing if the text is missing. */
static void put_fact(const char *title, const json_t *object, const char *key, struct buf *out)
{
    const char *text = control_text_of(object, key, "");
    if (text[0] == '\0')
        return;
    buf_printf(out, "%s: ", title);
    control_show_text(text, out);
    buf_putc(out, '\n');
}

/* Appends the numbers 0, 1, 2, 5 as "0-2,5". */
static void put_ranks(struct buf *out, const json_t *ranks)
{
    size_t count = json_array_size(ranks);
    for (size_t i = 0; i < count;) {
        json_int_t first = json_integer_value(json_array_get(ranks, i)), last = first;
        const char *comma = i > 0 ? "," : "";
        for (i++; i < count && last < INT64_MAX &&
                  json_integer_value(json_array_get(ranks, i)) == last + 1;
             i++)
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
        control_show_duration(json_number_value(drain), out);
        comma = ", ";
    }
    if (blacklisted == NULL)
        return;
    buf_printf(out, "%sblacklisted for ", comma);
    if (json_is_number(blacklisted))
        control_show_duration(json_number_value(blacklisted), out);
    else
        buf_puts(out, "the rest of the job");
}

/* A line for each fact that a job knows about itself. */
static void put_facts(struct buf *out, const json_t *status)
{
    static const struct {
        const char *key, *title;
    } texts[] = {{"command", "command"},          {"folder", "folder"},
                 {"waits_for", "waits for"},      {"metrics", "metrics"},
                 {"no_metrics", "metrics: none"}, {"page", "page"}};
    const json_t *last = json_object_get(status, "last_output_s");
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        put_fact(texts[i].title, status, texts[i].key, out);
    control_show_progress(json_object_get(status, "progress"), out);
    if (!json_is_number(last))
        return;
    buf_puts(out, "last output: ");
    control_show_duration(json_number_value(last), out);
    buf_puts(out, " ago\n");
}

/* Ranks that do not run. With one line for each, the last ones would hide the others. */
static void put_still(struct buf *out, const json_t *ranks)
{
    size_t total = json_array_size(ranks), over = 0;
    for (size_t i = 0; i < total; i++) {
        const char *state = control_text_of(json_array_get(ranks, i), "state", "");
        over += strcmp(state, "exited") == 0 || strcmp(state, "finished") == 0;
    }
    if (over > 0)
        buf_printf(out, "ended: %zu of %zu ranks\n", over, total);
}

static void put_job(struct buf *out, const json_t *status)
{
    const json_t *hosts = json_object_get(status, "hosts"), *up = json_object_get(status, "up_s");
    long long size = integer_of(status, "size"), restarts = integer_of(status, "restarts");
    size_t used = 0;
    for (size_t i = 0; i < json_array_size(hosts); i++)
        used += json_array_size(json_object_get(json_array_get(hosts, i), "ranks")) > 0;
    control_show_job(status, out);
    buf_puts(out, ": ");
    control_show_text(control_text_of(status, "state", "state unknown"), out);
    if (json_is_integer(json_object_get(status, "epoch")))
        buf_printf(out, ", epoch %lld", integer_of(status, "epoch"));
    if (size > 0)
        buf_printf(out, ", %lld rank%s", size, size == 1 ? "" : "s");
    if (size > 0 && used > 0)
        buf_printf(out, " on %zu host%s", used, used == 1 ? "" : "s");
    if (restarts > 0)
        buf_printf(out, ", %lld restart%s", restarts, restarts == 1 ? "" : "s");
    if (json_is_number(up)) {
        buf_puts(out, ", up ");
        control_show_duration(json_number_value(up), out);
    }
    buf_putc(out, '\n');
}

static void add_cell(struct text_table *table, struct buf *cell)
{
    text_table_add(table, buf_text(cell));
    buf_clear(cell);
}

static void add_host(struct text_table *table, const json_t *host)
{
    const json_t *slots = json_object_get(host, "slots");
    struct buf cell AUTO_BUF = BUF_INIT(CELL_MAX);
    control_show_text(control_text_of(host, "host", "?"), &cell);
    add_cell(table, &cell);
    control_show_text(control_text_of(host, "state", "?"), &cell);
    add_cell(table, &cell);
    if (json_is_integer(slots))
        buf_printf(&cell, "%lld", integer_of(host, "slots"));
    else
        buf_putc(&cell, '?');
    add_cell(table, &cell);
    put_ranks(&cell, json_object_get(host, "ranks"));
    add_cell(table, &cell);
    put_notes(&cell, host);
    add_cell(table, &cell);
}

static void put_hosts(struct buf *out, const json_t *hosts)
{
    static const char *const titles[] = {"host", "state", "slots", "ranks", ""};
    struct text_table table = {.columns = sizeof(titles) / sizeof(titles[0])};
    if (json_array_size(hosts) == 0)
        return;
    for (size_t i = 0; i < table.columns; i++)
        text_table_add(&table, titles[i]);
    for (size_t i = 0; i < json_array_size(hosts); i++)
        add_host(&table, json_array_get(hosts, i));
    buf_putc(out, '\n');
    text_table_print(&table, out);
    text_table_destroy(&table);
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
        control_show_text(control_text_of(event, "text", "?"), out);
        buf_putc(out, '\n');
    }
}

static void put_rank(const json_t *rank, struct buf *out)
{
    buf_printf(out, "rank %lld on ", integer_of(rank, "rank"));
    control_show_text(control_text_of(rank, "host", "?"), out);
}

/* What the job waits for, as the workers report it. */
static void put_stragglers(struct buf *out, const json_t *ranks)
{
    for (size_t i = 0; i < json_array_size(ranks); i++) {
        const json_t *rank = json_array_get(ranks, i);
        bool behind = json_is_true(json_object_get(rank, "straggler"));
        if (!behind && !json_is_true(json_object_get(rank, "silent")))
            continue;
        put_rank(rank, out);
        buf_puts(out, behind ? " is far behind the others\n"
                             : " is silent: most others have written something or reported "
                               "progress\n");
    }
}

/* "rank 2 on b was stopped (SIGSTOP) 9 s ago": it may go on since. */
static void put_stopped(struct buf *out, const json_t *ranks)
{
    for (size_t i = 0; i < json_array_size(ranks); i++) {
        const json_t *rank = json_array_get(ranks, i);
        const char *why = control_text_of(rank, "stopped", "");
        if (why[0] == '\0')
            continue;
        put_rank(rank, out);
        buf_puts(out, " was ");
        control_show_text(why, out);
        buf_putc(out, ' ');
        control_show_duration(number_of(rank, "stopped_s"), out);
        buf_puts(out, " ago\n");
    }
}

static void put_stalls(struct buf *out, const json_t *stalls)
{
    if (json_array_size(stalls) > 0)
        buf_putc(out, '\n');
    for (size_t i = 0; i < json_array_size(stalls); i++) {
        const char *line = json_string_value(json_array_get(stalls, i));
        control_show_text(line != NULL ? line : "?", out);
        buf_putc(out, '\n');
    }
}

void control_status_text(const json_t *status, struct buf *out)
{
    put_job(out, status);
    put_facts(out, status);
    put_still(out, json_object_get(status, "ranks"));
    put_hosts(out, json_object_get(status, "hosts"));
    put_stragglers(out, json_object_get(status, "ranks"));
    put_stopped(out, json_object_get(status, "ranks"));
    put_stalls(out, json_object_get(status, "stalls"));
    put_events(out, json_object_get(status, "events"));
}

/* Jobs that do not run any more, by their records (driver/control/record.h). */

static bool is_stopped(const json_t *record)
{
    return strcmp(control_text_of(record, "cause", ""), "stopped") == 0;
}

void control_record_state(const json_t *record, enum job_record_state state, struct buf *out)
{
    if (state == JOB_RECORD_ENDED)
        buf_printf(out, "%s, status %lld", is_stopped(record) ? "stopped" : "ended",
                   (long long)number_of(record, "status"));
    else
        buf_puts(out, state == JOB_RECORD_LOST ? "lost" : "running");
}

static void put_end(const json_t *record, double now_s, struct buf *out)
{
    double ended = number_of(record, "ended"), started = number_of(record, "started");
    control_show_text(is_stopped(record) ? control_text_of(record, "text", "stopped") : "ended",
                      out);
    buf_printf(out, " with status %lld, ", (long long)number_of(record, "status"));
    control_show_duration(now_s - ended, out);
    buf_puts(out, " ago, after ");
    control_show_duration(ended - started, out);
    buf_putc(out, '\n');
}

static void put_loss(const json_t *record, double now_s, struct buf *out)
{
    buf_puts(out, "lost: its hvdrun is gone and did not write how the job ended (most likely, "
                  "SIGKILL ended it)\nstarted: ");
    control_show_duration(now_s - number_of(record, "started"), out);
    buf_puts(out, " ago\n");
}

static void put_line(const json_t *line, struct buf *out)
{
    const json_t *rank = json_object_get(line, "rank");
    buf_puts(out, "    ");
    if (json_is_integer(rank)) {
        buf_printf(out, "[%lld]<", integer_of(line, "rank"));
        control_show_text(control_text_of(line, "stream", "?"), out);
        buf_puts(out, ">:");
    }
    control_show_text(control_text_of(line, "text", "?"), out);
    buf_putc(out, '\n');
}

void control_record_text(const json_t *record, enum job_record_state state, double now_s,
                         struct buf *out)
{
    const json_t *lines = json_object_get(record, "lines");
    control_show_job(record, out);
    buf_puts(out, ": ");
    if (state == JOB_RECORD_ENDED)
        put_end(record, now_s, out);
    else
        put_loss(record, now_s, out);
    put_fact("command", record, "command", out);
    put_fact("folder", record, "folder", out);
    buf_printf(out, "ranks: %lld\n", (long long)number_of(record, "size"));
    control_show_progress(json_object_get(record, "progress"), out);
    control_show_lines(control_text_of(record, "failure", ""), "", out);
    if (json_array_size(lines) > 0)
        buf_puts(out, "last lines:\n");
    for (size_t i = 0; i < json_array_size(lines); i++)
        put_line(json_array_get(lines, i), out);
}
