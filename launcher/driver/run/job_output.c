/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The output of the job as the settings want it, and its log on top of it. Passes output frames to
 * the output room, and credit back to the agents (D4). The credit belongs to the agent that sent
 * the bytes. When they have been written, another worker on another node may have their seat. If
 * its output cannot be delivered, the job ends.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "driver/end/end.h"
#include "driver/end/teardown.h"
#include "driver/job/job_kind.h"
#include "driver/job/part.h"
#include "driver/run/run.h"
#include "driver/tell/line_log.h"
#include "driver/tell/recent.h"

/* Bytes of one agent that have not been consumed. */
struct debt {
    struct node_link *node;
    int64_t hello_ns; /* of the agent; the next agent on the same node owes nothing */
    size_t bytes;
};

/* The debts of one seat, oldest first; nearly always one. */
struct debts {
    struct debt *items;
    size_t count;
};

struct collect {
    struct debts *seats;
    size_t seat_count;
    bool direct; /* bytes are being passed on: what is consumed now has not waited */
};

static void close_collect(struct job *job)
{
    struct collect *collect = job_part(job, collect);
    for (size_t i = 0; i < collect->seat_count; i++)
        free(collect->seats[i].items);
    free(collect->seats);
}

static void owe(struct collect *collect, size_t seat, struct node_link *node, size_t bytes)
{
    collect->seats =
        mem_reach(collect->seats, &collect->seat_count, seat + 1, sizeof(*collect->seats));
    struct debts *debts = &collect->seats[seat];
    struct debt *last = debts->count == 0 ? NULL : &debts->items[debts->count - 1];
    bool same = last != NULL && last->node == node && last->hello_ns == node->hello_ns;
    if (same || (last != NULL && last->bytes == 0)) {
        *last = (struct debt){node, node->hello_ns, last->bytes + bytes};
        return;
    }
    MEM_ADD(debts->items, debts->count) = (struct debt){node, node->hello_ns, bytes};
}

static int read_head(const struct job *job, const struct node_link *node,
                     const struct agent_frame *frame, struct frame_data *data)
{
    struct error err = ERROR_INIT;
    bool right = frame_data_get(frame->body, (uint32_t)frame->length, data, &err) == 0 &&
                 data->stream != 0 && job_seat_is_on(job, node, data->seat);
    return right ? 0 : -1;
}

static enum output_stream stream_of(const struct frame_data *data)
{
    return data->stream == 1 ? OUTPUT_STDOUT : OUTPUT_STDERR;
}

/* A stream ends once. Frames without credit must not pile up behind a slow reader, so a repeated
 * end is refused. A job of many epochs ignores it instead, because it would rather lose a host
 * than end. */
static int end_stream(struct job *job, uint32_t seat, enum output_stream stream)
{
    struct rank_record *record = &job->ranks.records[seat];
    uint8_t bit = (uint8_t)(1u << stream);
    if ((record->ended & bit) != 0)
        return job->kind->many_epochs ? 0 : -1;
    record->ended |= bit;
    output_end(job->output, (int)seat, stream);
    return 0;
}

static int collect_show(struct job *job, struct node_link *node, const struct agent_frame *frame)
{
    struct frame_data data;
    if (frame->length != FRAME_DATA_PREFIX || read_head(job, node, frame, &data) < 0)
        return -1;
    output_show(job->output, (int)data.seat, stream_of(&data));
    return 0;
}

/* With one pipe or terminal for both streams, stderr comes as stdout. */
static void remember(struct job *job, uint32_t seat, enum output_stream stream, const void *bytes,
                     size_t length, int64_t when_ns)
{
    struct tail *tail = &job->ranks.records[seat].tail;
    if (stream == OUTPUT_STDERR || job->settings->merge_stderr || job->settings->pty == seat)
        tail_add(tail, bytes, length, when_ns);
    else
        tail_elsewhere(tail, when_ns);
}

static int collect_bytes(struct job *job, struct node_link *node, const struct agent_frame *frame)
{
    struct collect *collect = job_part(job, collect);
    struct frame_data data;
    if (read_head(job, node, frame, &data) < 0)
        return -1;
    enum output_stream stream = stream_of(&data);
    if (frame->length == FRAME_DATA_PREFIX)
        return end_stream(job, data.seat, stream);
    size_t bytes = frame->length - FRAME_DATA_PREFIX;
    if (!credit_received(&node->credit, bytes))
        return -1;
    owe(collect, data.seat, node, bytes);
    const uint8_t *body = frame->body + FRAME_DATA_PREFIX;
    int64_t when = node_link_time(node, data.when_ns);
    struct rank_record *record = &job->ranks.records[data.seat];
    record->output += bytes;
    record->output_ns = when;
    remember(job, data.seat, stream, body, bytes, when);
    parts_output(job, (int)data.seat, stream == OUTPUT_STDERR, body, bytes);
    int64_t age = clock_mono_ns() - when;
    int64_t wall = clock_wall_ns() - (age > 0 ? age : 0);
    collect->direct = true;
    output_bytes(job->output, (int)data.seat, stream, body, bytes, wall);
    collect->direct = false;
    return 0;
}

static void give_back(struct node_link *node, int64_t hello_ns, size_t bytes, bool waited)
{
    if (!node_link_alive(node) || node->hello_ns != hello_ns ||
        !credit_consumed(&node->credit, bytes, waited))
        return;
    Hvdrun__Credit message = HVDRUN__CREDIT__INIT;
    message.bytes = node->credit.granted;
    node_link_send(node, FRAME_OUTPUT_CREDIT, 0, &message.base);
}

/* For output_ops.consumed. */
static void collect_consumed(struct collect *collect, int seat, size_t bytes)
{
    struct debts *debts = &collect->seats[seat];
    while (bytes > 0 && debts->count > 0) {
        struct debt *oldest = &debts->items[0];
        size_t part = bytes < oldest->bytes ? bytes : oldest->bytes;
        struct debt whose = *oldest;
        oldest->bytes -= part;
        bytes -= part;
        if (oldest->bytes == 0 && debts->count > 1)
            memmove(debts->items, debts->items + 1, --debts->count * sizeof(*debts->items));
        else if (part == 0)
            return;
        give_back(whose.node, whose.hello_ns, part, !collect->direct);
    }
}

static const struct part_frame frames[] = {
    {FRAME_OUTPUT, {collect_bytes, NULL, EPOCHS_OF_WORKERS, NODE_RUNNING, false}},
    {FRAME_OUTPUT_SHOW, {collect_show, NULL, EPOCHS_OF_WORKERS, NODE_RUNNING, false}},
    {0}};
const struct driver_part collect_part = {
    .name = "collect", .size = sizeof(struct collect), .close = close_collect, .frames = frames};

#define WAIT_MS 2000 /* for a stuck sink at the very end */

static void job_log(void *context, enum log_level level, const char *line)
{
    struct job *job = context;
    char *text AUTO_FREE = mem_printf("hvdrun: %s\n", line);
    output_message(job->output, level, line);
    struct recent_piece piece = {.rank = RECENT_LAUNCHER,
                                 .is_stderr = true,
                                 .wall_ns = clock_wall_ns(),
                                 .text = text,
                                 .length = strlen(text)};
    recent_add(job_part(job, recent), &piece);
    line_log_add(job_part(job, line_log), &piece, false);
}

/* What a progress bar overwrites is not worth its place among the last lines. */
static void keep(void *context, const struct output_piece *shown)
{
    const struct job *job = context;
    struct recent_piece piece = {.rank = shown->rank,
                                 .is_stderr = shown->stream == OUTPUT_STDERR,
                                 .wall_ns = shown->wall_ns,
                                 .text = shown->text,
                                 .length = shown->length};
    if (shown->overwritten) {
        line_log_add_bar(job_part(job, line_log), &piece);
        rank_tails_add_bar(job_part(job, rank_tails), &piece);
        return;
    }
    rank_tails_add(job_part(job, rank_tails), &piece);
    recent_add(job_part(job, recent), &piece);
    line_log_add(job_part(job, line_log), &piece, shown->goes_on);
}

static void output_consumed(void *context, int rank, size_t bytes)
{
    const struct job *job = context;
    collect_consumed(job_part(job, collect), rank, bytes);
}

/* The reader of our output is gone. For stdout that ends the job, as it ends any program. */
static void output_failed(void *context, enum output_stream stream, int errnum, const char *text)
{
    struct job *job = context;
    if (stream != OUTPUT_STDOUT || errnum != EPIPE) {
        log_error(&job->log, "%s", text);
        job->output_failed |= stream == OUTPUT_STDOUT;
    } else if (job->state >= JOB_FLUSHING || !hangup_takes_reader(job)) {
        job->gone = true;
        if (job->state < JOB_FLUSHING)
            exit_outside_interrupted(&job->outside, SIGPIPE, clock_mono_ns());
        teardown_after_failure(job);
    }
    if (job->state >= JOB_FLUSHING)
        verdict_note_output(job);
}

static int open_part(struct job *job, struct error *err)
{
    static const struct output_ops ops = {.consumed = output_consumed, .failed = output_failed};
    const struct settings *s = job->settings;
    size_t size = (size_t)job->plan->size;
    const char **hosts AUTO_FREE = mem_array(size, sizeof(*hosts));
    int *local_ranks AUTO_FREE = mem_array(size, sizeof(*local_ranks));
    for (int rank = 0; rank < job->plan->size; rank++) {
        hosts[rank] = job->plan->nodes[job->plan->ranks[rank].node].name;
        local_ranks[rank] = job->plan->ranks[rank].local_rank;
    }
    static const enum output_color colors[] = {[SET_COLOR_AUTO] = OUTPUT_COLOR_AUTO,
                                               [SET_COLOR_ALWAYS] = OUTPUT_COLOR_ALWAYS,
                                               [SET_COLOR_NEVER] = OUTPUT_COLOR_NEVER};
    struct output_config config = {.ranks = job->plan->size,
                                   .ranks_max = (int)s->max_np,
                                   .hosts = hosts,
                                   .local_ranks = local_ranks,
                                   .label = settings_is_set(s, OPT_label) ? s->label : NULL,
                                   .no_label = s->label == NULL || s->label[0] == '\0',
                                   .timestamp = s->prefix_output_with_timestamp,
                                   .collapse = s->collapse,
                                   .merge_stderr = s->merge_stderr,
                                   .quiet = s->quiet,
                                   .verbose = s->verbose > 0,
                                   .color = colors[s->color],
                                   .ranks_shown = s->ranks,
                                   .files = s->output_filename,
                                   .append = job_is_restarted(job),
                                   .raw_seat = s->pty >= 0 ? (int)s->pty : -1,
                                   .tap = {keep, job}};
    job->output = output_create(job->loop, &config, &ops, job, err);
    if (job->output == NULL)
        return -1;
    job->own[PART_job_output] = job->output;
    enum log_level level = s->verbose > 1 ? LOG_DEBUG : s->verbose > 0 ? LOG_INFO : LOG_NOTICE;
    job->log = (struct log){s->quiet ? LOG_ERROR : level, job_log, job};
    for (size_t i = 0; i < job->request->warnings->count; i++)
        log_warning(&job->log, "%s", job->request->warnings->items[i]);
    return 0;
}

static void close_part(struct job *job)
{
    output_destroy(job->output, WAIT_MS);
}

const struct driver_part job_output_part = {
    .name = "job_output", .open = open_part, .close = close_part};
