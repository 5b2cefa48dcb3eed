/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/control_record.h"

#include <stdbool.h>
#include <string.h>

#include "cli/control_show.h"

static double number_of(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

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

static void put_fact(const json_t *record, const char *key, struct buf *out)
{
    const char *text = control_text_of(record, key, "");
    if (text[0] == '\0')
        return;
    buf_printf(out, "%s: ", key);
    control_show_text(text, out);
    buf_putc(out, '\n');
}

static void put_line(const json_t *line, struct buf *out)
{
    const json_t *rank = json_object_get(line, "rank");
    if (json_is_integer(rank))
        buf_printf(out, "    [%lld]<", (long long)json_integer_value(rank));
    else
        buf_puts(out, "    ");
    if (json_is_integer(rank)) {
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
    put_fact(record, "command", out);
    put_fact(record, "folder", out);
    buf_printf(out, "ranks: %lld\n", (long long)number_of(record, "size"));
    control_show_progress(json_object_get(record, "progress"), out);
    control_show_lines(control_text_of(record, "failure", ""), "", out);
    if (json_array_size(lines) > 0)
        buf_puts(out, "last lines:\n");
    for (size_t i = 0; i < json_array_size(lines); i++)
        put_line(json_array_get(lines, i), out);
}
