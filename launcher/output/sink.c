/* SPDX-License-Identifier: Apache-2.0 */
#include "output/sink.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "output/writer.h"

struct sink {
    struct loop *loop;
    struct sink_ops ops;
    void *context;
    struct writer *writer;
    struct loop_fd *watch;
    struct block *current;
    size_t appended; /* bytes, ever */
    uint64_t submitted;
};

struct sink *sink_create(struct loop *loop, const struct sink_ops *ops, void *context)
{
    struct sink *sink = mem_alloc(sizeof(*sink));
    sink->loop = loop;
    sink->ops = *ops;
    sink->context = context;
    sink->writer = writer_create();
    return sink;
}

void sink_report_failures(struct sink *sink)
{
    int errnum = 0;
    struct output_target *target = writer_failure(sink->writer, &errnum);
    for (; target != NULL; target = writer_failure(sink->writer, &errnum)) {
        if (target->failed != NULL)
            target->failed(target->failed_context, target->path, errnum);
        else if (errnum != ECANCELED)
            sink->ops.failed(sink->context, target, errnum);
    }
}

static void on_wake(void *context, int what)
{
    (void)what;
    struct sink *sink = context;
    writer_woken(sink->writer);
    sink_submit(sink);
    sink_report_failures(sink);
    sink->ops.drained(sink->context);
}

/* A launcher that may not have one more thread still has to print: then it blocks. */
static void start(struct sink *sink)
{
    int wake_fd = writer_start(sink->writer);
    if (sink->watch == NULL && wake_fd >= 0) {
        sink->watch = loop_fd_create(sink->loop, wake_fd, on_wake, sink);
        loop_fd_watch(sink->watch, LOOP_READ);
    }
}

struct output_target *sink_keep(struct sink *sink, struct output_target *target_take)
{
    return writer_keep(sink->writer, target_take);
}

static void push(struct sink *sink, bool even_if_busy)
{
    struct block *block = sink->current;
    if (block == NULL)
        return;
    start(sink);
    if (writer_push(sink->writer, block, even_if_busy)) {
        sink->current = NULL;
        sink->submitted++;
    }
}

/* While the thread is busy a block that is not full stays here and is filled further: the queue
 * consists of full blocks, whatever the size of the lines. */
void sink_submit(struct sink *sink)
{
    push(sink, false);
}

static void make_room(struct sink *sink)
{
    struct block *block = sink->current;
    if (block != NULL && (block->segments == BLOCK_SEGMENTS || block->length == BLOCK_BYTES))
        push(sink, true);
    if (sink->current == NULL)
        sink->current = writer_block(sink->writer);
}

static struct segment *add_segment(struct sink *sink, struct output_target *target)
{
    make_room(sink);
    struct block *block = sink->current;
    struct segment *segment = &block->segment[block->segments++];
    *segment = (struct segment){target, (uint32_t)block->length, 0};
    return segment;
}

/* The segment that the next bytes for this target go into. */
static struct segment *segment_for(struct sink *sink, struct output_target *target)
{
    struct block *block = sink->current;
    if (block != NULL && block->segments > 0 && block->length < BLOCK_BYTES) {
        struct segment *last = &block->segment[block->segments - 1];
        if (last->target == target && last->offset < BLOCK_END)
            return last;
    }
    return add_segment(sink, target);
}

char *sink_place(struct sink *sink, struct output_target *target, size_t *room)
{
    segment_for(sink, target);
    *room = BLOCK_BYTES - sink->current->length;
    return sink->current->bytes + sink->current->length;
}

void sink_placed(struct sink *sink, size_t length)
{
    struct block *block = sink->current;
    block->segment[block->segments - 1].length += (uint32_t)length;
    block->length += length;
    sink->appended += length;
}

void sink_append(struct sink *sink, struct output_target *target, const void *bytes, size_t length)
{
    const char *at = bytes;
    while (length > 0) {
        size_t room;
        char *place = sink_place(sink, target, &room);
        size_t part = length < room ? length : room;
        memcpy(place, at, part);
        sink_placed(sink, part);
        at += part;
        length -= part;
    }
}

void sink_open(struct sink *sink, struct output_target *target)
{
    segment_for(sink, target);
}

void sink_end(struct sink *sink, struct output_target *target, enum target_end end)
{
    add_segment(sink, target)->offset = BLOCK_END + (uint32_t)end;
}

size_t sink_queued(const struct sink *sink)
{
    return sink->appended - writer_written(sink->writer);
}

uint64_t sink_ticket(const struct sink *sink)
{
    return sink->submitted + (sink->current != NULL);
}

bool sink_reached(const struct sink *sink, uint64_t ticket)
{
    return writer_done(sink->writer) >= ticket;
}

void sink_wake(struct sink *sink, size_t below, uint64_t ticket)
{
    writer_wake(sink->writer, sink->appended, below, ticket);
}

bool sink_destroy(struct sink *sink, int64_t wait_ms)
{
    if (sink == NULL)
        return true;
    push(sink, true);
    loop_fd_destroy(sink->watch);
    bool ended = writer_end(sink->writer, wait_ms);
    free(sink);
    return ended;
}

static struct backlog_chunk *add(struct backlog *backlog, int seat, int stream, size_t length)
{
    struct backlog_chunk *chunk = mem_resize(NULL, sizeof(*chunk) + length); /* not zeroed */
    *chunk = (struct backlog_chunk){.seat = seat, .stream = stream, .length = length};
    if (backlog->last != NULL)
        backlog->last->next = chunk;
    else
        backlog->first = chunk;
    backlog->last = chunk;
    backlog->put++;
    return chunk;
}

void backlog_put(struct backlog *backlog, int seat, int stream, const void *bytes, size_t length,
                 int64_t wall_ns)
{
    struct backlog_chunk *chunk = add(backlog, seat, stream, length);
    chunk->wall_ns = wall_ns;
    memcpy(chunk->bytes, bytes, length);
}

void backlog_put_word(struct backlog *backlog, enum backlog_what what, int seat, int stream)
{
    add(backlog, seat, stream, 0)->what = what;
}

void backlog_put_seat(struct backlog *backlog, int seat, const struct output_seat *who)
{
    size_t size = who->host != NULL ? strlen(who->host) + 1 : 0;
    struct backlog_chunk *chunk = add(backlog, seat, 0, size);
    chunk->length = 0;
    chunk->what = BACKLOG_SEAT;
    chunk->who = *who;
    if (size > 0) {
        memcpy(chunk->bytes, who->host, size);
        chunk->who.host = chunk->bytes;
    }
}

void backlog_drop_first(struct backlog *backlog)
{
    struct backlog_chunk *chunk = backlog->first;
    backlog->first = chunk->next;
    if (backlog->first == NULL)
        backlog->last = NULL;
    backlog->done++;
    free(chunk);
}
