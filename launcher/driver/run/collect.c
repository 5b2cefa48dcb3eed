/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/run/collect.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "driver/job/job_kind.h"
#include "driver/job/part.h"

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

static int open_part(struct job *job, struct error *err)
{
    (void)err;
    job->own[PART_collect] = mem_alloc(sizeof(struct collect));
    return 0;
}

static void close_part(struct job *job)
{
    struct collect *collect = job_part(job, collect);
    for (size_t i = 0; i < collect->seat_count; i++)
        free(collect->seats[i].items);
    free(collect->seats);
    free(collect);
}

static void owe(struct collect *collect, size_t seat, struct node_link *node, size_t bytes)
{
    if (seat >= collect->seat_count) {
        collect->seats = mem_resize_array(collect->seats, seat + 1, sizeof(*collect->seats));
        memset(collect->seats + collect->seat_count, 0,
               (seat + 1 - collect->seat_count) * sizeof(*collect->seats));
        collect->seat_count = seat + 1;
    }
    struct debts *debts = &collect->seats[seat];
    struct debt *last = debts->count == 0 ? NULL : &debts->items[debts->count - 1];
    bool same = last != NULL && last->node == node && last->hello_ns == node->hello_ns;
    if (same || (last != NULL && last->bytes == 0)) {
        *last = (struct debt){node, node->hello_ns, last->bytes + bytes};
        return;
    }
    debts->items = mem_resize_array(debts->items, debts->count + 1, sizeof(*debts->items));
    debts->items[debts->count++] = (struct debt){node, node->hello_ns, bytes};
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

void collect_consumed(struct collect *collect, int seat, size_t bytes)
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
    .name = "collect", .open = open_part, .close = close_part, .frames = frames};
