/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growable byte buffer that names its limit when it is created.
 *
 * Bytes are appended at the end and taken from the front, so it also serves as a queue. The
 * content is always followed by a NUL that does not count, so buf_text() is a C string when no NUL
 * was appended. Appending past the limit returns -1 and leaves the content as it was.
 */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
    char *bytes; /* owned; NULL until the first append */
    size_t start, length, room;
    size_t limit;
};

#define BUF_INIT(max)  \
    {                  \
        .limit = (max) \
    }
#define AUTO_BUF __attribute__((cleanup(buf_destroy)))

void buf_init(struct buf *buf, size_t limit);
void buf_destroy(struct buf *buf); /* accepts an all-zero struct; ready for buf_init again */

int buf_append(struct buf *buf, const void *bytes, size_t length);
int buf_puts(struct buf *buf, const char *text);
int buf_putc(struct buf *buf, char byte);
int buf_printf(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
int buf_vprintf(struct buf *buf, const char *format, va_list args);

/* Makes room for `length` more bytes and returns where to write them (NULL: over the limit);
 * buf_commit() then says how many were written. */
void *buf_reserve(struct buf *buf, size_t length);
void buf_commit(struct buf *buf, size_t length);

const char *buf_text(const struct buf *buf); /* never NULL; borrowed until the next change */
void buf_consume(struct buf *buf, size_t length);
void buf_truncate(struct buf *buf, size_t length); /* keeps at most its first `length` bytes */
void buf_clear(struct buf *buf);
char *buf_take(struct buf *buf); /* the content as a string the caller owns; empties the buffer */
