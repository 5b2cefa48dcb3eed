/* SPDX-License-Identifier: Apache-2.0 */
#include "output/backlog.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

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

void backlog_destroy(struct backlog *backlog)
{
    while (backlog->first != NULL)
        backlog_drop_first(backlog);
}
