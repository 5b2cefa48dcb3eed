/* SPDX-License-Identifier: Apache-2.0 */
#include "model/exit/tail.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/plain.h"

#define ROOM_FIRST 512 /* a power of two below TAIL_KEPT, which is one, too */

/* Marks closer together than this count as one: a program writes the lines of one error one by one.
 */
#define MARK_NS 1000000

void tail_destroy(struct tail *tail)
{
    free(tail->ring);
    free(tail->marks);
    free(tail->text);
    *tail = (struct tail){.total = 0};
}

static struct tail_mark *mark_at(const struct tail *tail, unsigned number)
{
    return &tail->marks[(tail->first_mark + number) % TAIL_MARKS];
}

static void add_mark(struct tail *tail, int64_t when_ns, bool elsewhere)
{
    const struct tail_mark *last =
        tail->mark_count > 0 ? mark_at(tail, tail->mark_count - 1) : NULL;
    if (last != NULL && last->elsewhere == elsewhere && when_ns - last->when_ns < MARK_NS)
        return;
    if (tail->marks == NULL)
        tail->marks = mem_array(TAIL_MARKS, sizeof(*tail->marks));
    if (tail->mark_count == TAIL_MARKS)
        tail->first_mark = (tail->first_mark + 1) % TAIL_MARKS;
    else
        tail->mark_count++;
    *mark_at(tail, tail->mark_count - 1) = (struct tail_mark){tail->total, when_ns, elsewhere};
}

/* While the ring grows, all bytes of the stream are in it, from its beginning. */
static void reserve(struct tail *tail, size_t length)
{
    size_t room = tail->room > 0 ? tail->room : ROOM_FIRST;
    while (room < TAIL_KEPT && room < tail->total + length)
        room *= 2;
    if (room != tail->room)
        tail->ring = mem_resize_array(tail->ring, room, 1);
    tail->room = room;
}

void tail_add(struct tail *tail, const void *bytes, size_t length, int64_t when_ns)
{
    const char *from = bytes;
    if (length == 0)
        return;
    add_mark(tail, when_ns, false);
    reserve(tail, length);
    size_t skipped = length > TAIL_KEPT ? length - TAIL_KEPT : 0;
    from += skipped;
    length -= skipped;
    tail->total += skipped;
    size_t at = (size_t)(tail->total % tail->room);
    size_t first = length < tail->room - at ? length : tail->room - at;
    memcpy(tail->ring + at, from, first);
    memcpy(tail->ring, from + first, length - first);
    tail->total += length;
}

void tail_elsewhere(struct tail *tail, int64_t when_ns)
{
    if (tail->mark_count == 0)
        return;
    const struct tail_mark *last = mark_at(tail, tail->mark_count - 1);
    if (!last->elsewhere && when_ns - last->when_ns >= TAIL_SILENCE_NS)
        add_mark(tail, when_ns, true);
}

/* The time of the byte at walk->at; passes all marks up to it. True: one of them says `elsewhere`.
 */
static bool pass_marks(struct tail_walk *walk, uint64_t at)
{
    const struct tail *tail = walk->tail;
    while (walk->marks < tail->mark_count) {
        const struct tail_mark *mark = mark_at(tail, walk->marks);
        if (mark->at > at && walk->marks > 0)
            return false;
        walk->marks++;
        walk->when_ns = mark->when_ns;
        if (mark->elsewhere)
            return true;
    }
    return false;
}

void tail_walk_begin(struct tail_walk *walk, const struct tail *tail)
{
    *walk = (struct tail_walk){.tail = tail, .cut = tail->total > TAIL_KEPT};
    if (tail->total == 0)
        return;
    walk->length = walk->cut ? TAIL_KEPT : (size_t)tail->total;
    walk->bytes = mem_alloc(walk->length);
    size_t at = (size_t)((tail->total - walk->length) % tail->room);
    size_t first = walk->length < tail->room - at ? walk->length : tail->room - at;
    memcpy(walk->bytes, tail->ring + at, first);
    memcpy(walk->bytes + first, tail->ring, walk->length - first);
}

void tail_walk_end(struct tail_walk *walk)
{
    free(walk->bytes);
    walk->bytes = NULL;
}

bool tail_walk_next(struct tail_walk *walk, struct tail_line *line)
{
    uint64_t start = walk->tail->total - walk->length;
    *line = (struct tail_line){.elsewhere = pass_marks(walk, start + walk->at)};
    line->when_ns = walk->when_ns;
    if (line->elsewhere)
        return true;
    if (walk->at >= walk->length)
        return false;
    line->text = walk->bytes + walk->at;
    size_t rest = walk->length - walk->at;
    while (line->length < rest && line->text[line->length] != '\n' &&
           line->text[line->length] != '\r')
        line->length++;
    walk->at += line->length + (line->length < rest);
    return true;
}

static char *last_lines(const char *bytes, size_t length, bool cut_before)
{
    const char *end = bytes + length;
    while (end > bytes && (end[-1] == '\n' || end[-1] == '\r'))
        end--;
    const char *start = end - bytes > TAIL_BYTES ? end - TAIL_BYTES : bytes;
    const char *from = end;
    for (int lines = 0; lines < TAIL_LINES && from > start; lines++) {
        const char *newline = memrchr(start, '\n', (size_t)(from - start));
        from = newline != NULL ? newline : start;
    }
    from += from < end && *from == '\n';
    /* cut in the middle of a sequence: begin behind it */
    bool cut = from > bytes ? from[-1] != '\n' : cut_before;
    while (cut && from < end && ((unsigned char)*from & 0xC0) == 0x80)
        from++;
    size_t rest = (size_t)(end - from);
    char *text = mem_alloc(rest + 1);
    memcpy(text, from, rest);
    plain_valid(text, rest);
    return text;
}

const char *tail_text(struct tail *tail)
{
    struct tail_walk all;
    tail_walk_begin(&all, tail);
    free(tail->text);
    tail->text = last_lines(all.bytes != NULL ? all.bytes : "", all.length, all.cut);
    tail_walk_end(&all);
    return tail->text;
}
