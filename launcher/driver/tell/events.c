/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/tell/events.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "driver/job/part.h"
#include "driver/tell/events_command.h"
#include "driver/tell/json_text.h"

struct events {
    struct output_file *file;       /* NULL: no --events */
    struct events_command *command; /* NULL: no --on-event */
};

static int open_part(struct job *job, struct error *err)
{
    const struct settings *settings = job->settings;
    if (settings->events == NULL && settings->on_event == NULL)
        return 0;
    struct events *events = mem_alloc(sizeof(*events));
    job->own[PART_events] = events;
    if (settings->events != NULL)
        events->file = output_file_open(job->output, settings->events, job_is_restarted(job));
    if (settings->on_event != NULL)
        events->command = events_command_create(job, settings->on_event, err);
    return settings->on_event != NULL && events->command == NULL ? -1 : 0;
}

static void close_part(struct job *job)
{
    struct events *events = job_part(job, events);
    output_file_close(events->file);
    events_command_destroy(events->command);
    free(events);
}

bool events_finish(const struct job *job, void (*over)(void *context), void *context)
{
    struct events *events = job_part(job, events);
    return events != NULL && events_command_finish(events->command, over, context);
}

void events_object(const struct job *job, const char *event, json_t *fields)
{
    struct events *events = job_part(job, events);
    if (events == NULL) {
        json_decref(fields);
        return;
    }
    json_t *object =
        json_pack("{s:f, s:s}", "time", (double)(clock_wall_ns() / 1000) / 1e6, "event", event);
    json_object_update(object, fields);
    json_decref(fields);
    char *line =
        events->file == NULL ? NULL : json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(16));
    events_command_take(events->command, event, object);
    if (line != NULL) {
        AUTO_FREE char *whole = mem_printf("%s\n", line);
        output_file_write(events->file, whole, strlen(whole));
    }
    free(line);
    json_decref(object);
}

void events_job(const struct job *job, const char *event)
{
    events_object(job, event, NULL);
}

void events_signal(const struct job *job, int signal)
{
    events_object(job, "signal", json_pack("{s:i}", "signal", signal));
}

void events_text(const struct job *job, const char *event, const char *text)
{
    events_object(job, event, json_pack("{s:o}", "text", json_text(text)));
}

void events_node(const struct job *job, const char *event, const struct node_link *node,
                 const char *text)
{
    if (job_part(job, events) == NULL)
        return;
    json_t *object = json_pack("{s:i, s:o}", "node", node->index, "host", json_text(node->host));
    if (text != NULL)
        json_object_set_new(object, "text", json_text(text));
    events_object(job, event, object);
}

void events_rank(const struct job *job, const char *event, int seat)
{
    if (job_part(job, events) == NULL)
        return;
    const struct rank_record *record = &job->ranks.records[seat];
    json_t *object = json_object();
    json_object_set_new(object, "rank", json_integer(record->rank));
    json_object_set_new(object, "host", json_text(job_seat_host(job, seat)));
    json_add_world(object, record);
    json_object_set_new(object, "pid", json_integer(record->pid));
    json_object_set_new(object, "epoch", json_integer(record->epoch));
    if (record->state >= RANK_EXITED)
        json_object_set_new(object, record->signaled ? "signal" : "exit_code",
                            json_integer(record->code));
    if (record->state >= RANK_EXITED && record->ended_by_us)
        json_object_set_new(object, "by_hvdrun", json_true());
    events_object(job, event, object);
}

static void set_rank(json_t *object, const char *key, const struct job *job, int seat)
{
    json_object_set_new(object, key, json_integer(job_seat_rank(job, seat)));
}

void events_likely_cause(const struct job *job, int seat, int first, const char *text)
{
    events_object(job, "likely_cause",
                  json_pack("{s:i, s:i, s:o}", "rank", job_seat_rank(job, seat), "first_rank",
                            job_seat_rank(job, first), "text", json_text(text)));
}

void events_straggler(const struct job *job, int seat, bool silent, const char *text)
{
    json_t *object = json_object();
    if (silent)
        json_object_set_new(object, "silent", json_true());
    set_rank(object, "rank", job, seat);
    json_object_set_new(object, "host", json_text(job_seat_host(job, seat)));
    if (text != NULL)
        json_object_set_new(object, "text", json_text(text));
    events_object(job, text != NULL ? "straggler" : "straggler_over", object);
}

static void tell(struct job *job)
{
    const struct verdict *verdict = &job->verdict;
    json_t *object = json_object();
    json_object_set_new(object, "status", json_integer(verdict->status));
    json_object_set_new(object, "cause", json_text(exit_cause_name(verdict->cause)));
    json_object_set_new(object, "text", json_text(verdict->explanation));
    if (verdict->seat >= 0)
        set_rank(object, "rank", job, verdict->seat);
    if (verdict->likely)
        set_rank(object, "first_rank", job, verdict->first_seat);
    events_object(job, "job_end", object);
}

static void node_event(struct job *job, struct node_link *node, const char *event, const char *text)
{
    events_node(job, event, node, text);
}

/* It has no data if the user wants no events. -1: the command cannot be read. */
const struct driver_part events_part = {.name = "events",
                                        .open = open_part,
                                        .close = close_part,
                                        .node_event = node_event,
                                        .tell = tell};
