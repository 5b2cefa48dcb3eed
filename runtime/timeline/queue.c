/* SPDX-License-Identifier: Apache-2.0 */
#include "timeline/queue.h"

#include <string.h>

#define DIMS_MAX 32

/* In front of each event. The texts follow, each with its NUL, and then the shape. A length of 0
 * means NULL. */
struct entry {
    enum trace_kind kind;
    int32_t set, rank, dims;
    int64_t time_ns;
    uint32_t tensor, what, type; /* bytes with the NUL */
};

static uint32_t length_of(const char *text)
{
    return text == NULL ? 0 : (uint32_t)strlen(text) + 1;
}

static char *put_text(char *at, const char *text, uint32_t length)
{
    if (length > 0)
        memcpy(at, text, length);
    return at + length;
}

int timeline_queue_put(struct buf *queue, const struct trace_event *event)
{
    int32_t dims = event->shape == NULL ? 0 : event->dims;
    dims = dims < 0 ? 0 : dims > DIMS_MAX ? DIMS_MAX : dims;
    struct entry entry = {.kind = event->kind,
                          .set = event->set,
                          .rank = event->rank,
                          .dims = dims,
                          .time_ns = event->time_ns,
                          .tensor = length_of(event->tensor),
                          .what = length_of(event->what),
                          .type = length_of(event->type)};
    size_t shape = (size_t)dims * sizeof(int64_t);
    size_t length = sizeof(entry) + entry.tensor + entry.what + entry.type + shape;
    char *at = buf_reserve(queue, length);
    if (at == NULL)
        return -1;
    memcpy(at, &entry, sizeof(entry));
    at = put_text(at + sizeof(entry), event->tensor, entry.tensor);
    at = put_text(at, event->what, entry.what);
    at = put_text(at, event->type, entry.type);
    if (shape > 0)
        memcpy(at, event->shape, shape);
    buf_commit(queue, length);
    return 0;
}

static const char *take_text(const char **at, uint32_t length)
{
    const char *text = length > 0 ? *at : NULL;
    *at += length;
    return text;
}

bool timeline_queue_take(struct buf *queue, struct trace_event *event, int64_t shape[32])
{
    struct entry entry;
    if (queue->length < sizeof(entry))
        return false;
    const char *at = buf_text(queue);
    memcpy(&entry, at, sizeof(entry));
    at += sizeof(entry);
    *event = (struct trace_event){.kind = entry.kind,
                                  .set = entry.set,
                                  .rank = entry.rank,
                                  .dims = entry.dims,
                                  .time_ns = entry.time_ns,
                                  .shape = shape};
    event->tensor = take_text(&at, entry.tensor);
    event->what = take_text(&at, entry.what);
    event->type = take_text(&at, entry.type);
    size_t bytes = (size_t)entry.dims * sizeof(int64_t);
    memcpy(shape, at, bytes);
    buf_consume(queue, sizeof(entry) + entry.tensor + entry.what + entry.type + bytes);
    return true;
}
