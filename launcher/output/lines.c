/* SPDX-License-Identifier: Apache-2.0 */
#include "output/lines.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define KEEP_ROOM 1024 /* a larger buffer is given back when it is empty */

/* Where the next \n and \r are, so that no byte is searched twice however they alternate. */
struct cursor {
    const char *at, *end;
    const char *newline, *ret; /* at or after `at`; `end` when there is none */
};

static const char *find(const char *from, const char *end, char byte)
{
    const char *found = from < end ? memchr(from, byte, (size_t)(end - from)) : NULL;
    return found != NULL ? found : end;
}

static struct cursor cursor_at(const char *at, const char *end)
{
    return (struct cursor){at, end, find(at, end, '\n'), find(at, end, '\r')};
}

static void cursor_move(struct cursor *cursor, const char *to)
{
    cursor->at = to;
    if (cursor->newline < to)
        cursor->newline = find(to, cursor->end, '\n');
    if (cursor->ret < to)
        cursor->ret = find(to, cursor->end, '\r');
}

/* The end of the line that starts at the cursor, or NULL when it is not there yet: a \r at the very
 * end of the bytes may still become a \r\n. */
static const char *line_end(const struct cursor *cursor, enum lines_end *how)
{
    *how = LINES_NEWLINE;
    if (cursor->ret >= cursor->newline)
        return cursor->newline < cursor->end ? cursor->newline + 1 : NULL;
    const char *after = cursor->ret;
    while (after < cursor->end && *after == '\r')
        after++;
    if (after == cursor->end)
        return NULL;
    if (*after == '\n')
        return after + 1;
    *how = LINES_RETURN;
    return after;
}

size_t lines_utf8_tail(const char *text, size_t length)
{
    for (size_t back = 1; back <= 3 && back <= length; back++) {
        unsigned char byte = (unsigned char)text[length - back];
        if ((byte & 0xC0) == 0x80)
            continue;
        size_t wanted = byte >= 0xF0 && byte < 0xF8   ? 4
                        : byte >= 0xE0 && byte < 0xF0 ? 3
                        : byte >= 0xC2 && byte < 0xE0 ? 2
                                                      : 1;
        return wanted > back ? back : 0;
    }
    return 0;
}

static void emit_piece(struct lines *lines, const char *text, size_t length, enum lines_end end,
                       lines_emit *emit, void *context)
{
    struct lines_piece piece = {text, length, end, lines->continued};
    lines->continued = end == LINES_PART;
    lines->returned = false;
    emit(context, &piece);
}

static void hold(struct lines *lines, const char *bytes, size_t length)
{
    if (length == 0)
        return;
    if (lines->length + length > lines->room) {
        size_t room = lines->room > 0 ? lines->room : 128;
        while (room < lines->length + length)
            room *= 2;
        lines->held = mem_resize(lines->held, room);
        lines->room = room;
    }
    memcpy(lines->held + lines->length, bytes, length);
    lines->length += length;
}

/* Keeps the last `keep` held bytes and forgets the others. */
static void release(struct lines *lines, size_t keep)
{
    if (keep > 0)
        memmove(lines->held, lines->held + lines->length - keep, keep);
    lines->length = keep;
    if (keep == 0 && lines->room > KEEP_ROOM)
        lines_clear(lines);
}

static bool ends_with_return(const struct lines *lines)
{
    return lines->length > 0 && lines->held[lines->length - 1] == '\r';
}

void lines_clear(struct lines *lines)
{
    free(lines->held);
    lines->held = NULL;
    lines->length = lines->room = 0;
}

/* The held line is continued by the bytes at the cursor; returns with the cursor behind what was
 * taken. */
static void join(struct lines *lines, struct cursor *cursor, lines_emit *emit, void *context)
{
    enum lines_end how;
    const char *stop;
    if (ends_with_return(lines) && *cursor->at != '\r' && *cursor->at != '\n') {
        stop = cursor->at;
        how = LINES_RETURN;
    } else if (ends_with_return(lines)) {
        /* only the rest of this line's end: the \r after it belong to the next one */
        stop = cursor->at;
        while (stop < cursor->end && *stop == '\r')
            stop++;
        how = stop < cursor->end && *stop == '\n' ? LINES_NEWLINE : LINES_RETURN;
        stop = stop == cursor->end ? NULL : stop + (how == LINES_NEWLINE);
    } else {
        stop = line_end(cursor, &how);
    }
    const char *taken = stop != NULL ? stop : cursor->end;
    hold(lines, cursor->at, (size_t)(taken - cursor->at));
    cursor_move(cursor, taken);
    if (stop == NULL)
        return;
    emit_piece(lines, lines->held, lines->length, how, emit, context);
    release(lines, 0);
}

void lines_add(struct lines *lines, const char *bytes, size_t length, lines_emit *emit,
               void *context)
{
    if (length == 0)
        return;
    struct cursor cursor = cursor_at(bytes, bytes + length);
    if (lines->returned && *cursor.at == '\n') {
        lines->continued = true;
        emit_piece(lines, cursor.at, 1, LINES_NEWLINE, emit, context);
        cursor_move(&cursor, cursor.at + 1);
    }
    lines->returned = false;
    if (lines->length > 0 && cursor.at < cursor.end)
        join(lines, &cursor, emit, context);
    if (lines->runs && cursor.ret == cursor.end && cursor.newline < cursor.end) {
        const char *last = memrchr(cursor.at, '\n', (size_t)(cursor.end - cursor.at));
        emit_piece(lines, cursor.at, (size_t)(last + 1 - cursor.at), LINES_NEWLINE, emit, context);
        cursor.at = last + 1;
        cursor.newline = cursor.end;
    }
    while (cursor.at < cursor.end) {
        enum lines_end how;
        const char *stop = line_end(&cursor, &how);
        if (stop == NULL)
            break;
        emit_piece(lines, cursor.at, (size_t)(stop - cursor.at), how, emit, context);
        cursor_move(&cursor, stop);
    }
    if (cursor.at < cursor.end)
        hold(lines, cursor.at, (size_t)(cursor.end - cursor.at));
    if (lines->length > LINES_HOLD_MAX)
        lines_show(lines, emit, context);
}

void lines_show(struct lines *lines, lines_emit *emit, void *context)
{
    if (!lines_waiting(lines))
        return;
    if (ends_with_return(lines)) {
        emit_piece(lines, lines->held, lines->length, LINES_RETURN, emit, context);
        lines->returned = true;
        release(lines, 0);
        return;
    }
    size_t tail = lines_utf8_tail(lines->held, lines->length);
    emit_piece(lines, lines->held, lines->length - tail, LINES_PART, emit, context);
    release(lines, tail);
}

void lines_finish(struct lines *lines, lines_emit *emit, void *context)
{
    if (lines->returned)
        lines->continued = true;
    if (lines->length > 0 || lines->continued)
        emit_piece(lines, lines->held, lines->length, LINES_FINAL, emit, context);
    lines_clear(lines);
}

bool lines_waiting(const struct lines *lines)
{
    return lines->length > 0 && lines_utf8_tail(lines->held, lines->length) < lines->length;
}
