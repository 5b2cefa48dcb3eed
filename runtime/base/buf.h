/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growable byte buffer that names its limit when it is created.
 *
 * Functions append bytes at the end and take them from the front, so a buffer is also a queue. A
 * NUL that does not count always follows the content. So buf_text() is a C string if no NUL was
 * appended. An append past the limit returns -1 and does not change the content.
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
void buf_destroy(struct buf *buf); /* accepts an all-zero struct; buf_init may follow */

int buf_append(struct buf *buf, const void *bytes, size_t length);
int buf_puts(struct buf *buf, const char *text);
int buf_putc(struct buf *buf, char byte);
int buf_printf(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
int buf_vprintf(struct buf *buf, const char *format, va_list args);

/* Makes room for `length` more bytes and returns where to write them. NULL: over the limit. Then
 * call buf_commit() with the number of bytes that you wrote. */
void *buf_reserve(struct buf *buf, size_t length);
void buf_commit(struct buf *buf, size_t length);

const char *buf_text(const struct buf *buf); /* never NULL; borrowed until the next change */
void buf_consume(struct buf *buf, size_t length);
void buf_truncate(struct buf *buf, size_t length); /* keeps at most the first `length` bytes */
void buf_clear(struct buf *buf);
char *buf_take(struct buf *buf); /* the content as the caller's string; empties the buffer */
