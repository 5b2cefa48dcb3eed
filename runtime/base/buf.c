/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define FIRST_ROOM 256
#define PAGES_ROOM ((size_t)128 << 10) /* from here on, whole pages */

void buf_init(struct buf *buf, size_t limit)
{
    *buf = (struct buf){.limit = limit};
}

static void give_back(struct buf *buf)
{
    if (buf->room < PAGES_ROOM)
        free(buf->bytes);
    else
        mem_free_pages(buf->bytes, buf->room);
}

void buf_destroy(struct buf *buf)
{
    give_back(buf);
    *buf = (struct buf){.limit = buf->limit};
}

/* Its content begins at its start. */
static void grow(struct buf *buf, size_t room)
{
    if (room < PAGES_ROOM) {
        buf->bytes = mem_resize(buf->bytes, room);
    } else {
        char *pages = mem_pages(room);
        if (buf->length > 0)
            memcpy(pages, buf->bytes, buf->length);
        give_back(buf);
        buf->bytes = pages;
    }
    buf->room = room;
}

/* `room` includes the closing NUL, so this adds 1. */
void *buf_reserve(struct buf *buf, size_t length)
{
    if (length > buf->limit || buf->length > buf->limit - length)
        return NULL;
    size_t needed = buf->length + length + 1;
    if (buf->start + needed > buf->room && buf->start > 0) {
        memmove(buf->bytes, buf->bytes + buf->start, buf->length + 1);
        buf->start = 0;
    }
    if (needed > buf->room) {
        size_t room = buf->room > 0 ? buf->room : FIRST_ROOM;
        while (room < needed)
            room *= 2;
        grow(buf, room);
        buf->bytes[buf->start + buf->length] = '\0'; /* even if nothing is committed */
    }
    return buf->bytes + buf->start + buf->length;
}

void buf_commit(struct buf *buf, size_t length)
{
    buf->length += length;
    buf->bytes[buf->start + buf->length] = '\0';
}

int buf_append(struct buf *buf, const void *bytes, size_t length)
{
    void *place = buf_reserve(buf, length);
    if (place == NULL)
        return -1;
    if (length > 0)
        memcpy(place, bytes, length);
    buf_commit(buf, length);
    return 0;
}

int buf_puts(struct buf *buf, const char *text)
{
    return buf_append(buf, text, strlen(text));
}

int buf_putc(struct buf *buf, char byte)
{
    return buf_append(buf, &byte, 1);
}

int buf_vprintf(struct buf *buf, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    char small[256];
    int length = vsnprintf(small, sizeof(small), format, args);
    int result = -1;
    if (length >= 0 && (size_t)length < sizeof(small)) {
        result = buf_append(buf, small, (size_t)length);
    } else if (length >= 0) {
        char *place = buf_reserve(buf, (size_t)length);
        if (place != NULL) {
            vsnprintf(place, (size_t)length + 1, format, again);
            buf_commit(buf, (size_t)length);
            result = 0;
        }
    }
    va_end(again);
    return result;
}

int buf_printf(struct buf *buf, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int result = buf_vprintf(buf, format, args);
    va_end(args);
    return result;
}

const char *buf_text(const struct buf *buf)
{
    return buf->bytes == NULL ? "" : buf->bytes + buf->start;
}

void buf_consume(struct buf *buf, size_t length)
{
    if (length >= buf->length) {
        buf_clear(buf);
        return;
    }
    buf->start += length;
    buf->length -= length;
}

void buf_truncate(struct buf *buf, size_t length)
{
    if (length >= buf->length)
        return;
    buf->length = length;
    buf->bytes[buf->start + length] = '\0';
}

void buf_clear(struct buf *buf)
{
    buf->start = 0;
    buf->length = 0;
    if (buf->bytes != NULL)
        buf->bytes[0] = '\0';
}

char *buf_take(struct buf *buf)
{
    char *text = mem_dup(buf_text(buf), buf->length + 1);
    buf_destroy(buf);
    return text;
}
