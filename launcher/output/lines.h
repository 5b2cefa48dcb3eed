/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes lines of the bytes of one stream. Pure.
 *
 * A line ends with \n (also \r\n: any \r directly before the \n belongs to the end) or with \r, as
 * progress bars do. The bytes of all pieces together are the bytes that came in. How the input was
 * cut does not change the pieces, with one exception. A line that does not end is handed out in
 * parts: when its owner calls lines_show(), or when LINES_HOLD_MAX bytes of it have come. A part
 * never ends inside a UTF-8 sequence.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINES_HOLD_MAX (64 * 1024)

enum lines_end {
    LINES_PART,    /* the line goes on in a later piece */
    LINES_NEWLINE, /* ends with \n, which is the last byte of the text */
    LINES_RETURN,  /* ends with one or more \r, the last bytes of the text */
    LINES_FINAL    /* the stream has ended without a \n (a \r may be there) */
};

struct lines_piece {
    const char *text; /* borrowed until the callback returns */
    size_t length;    /* 0 only for LINES_FINAL */
    enum lines_end end;
    bool continued; /* the line began in an earlier piece; also true for the \n of a \r\n whose \r
                       has been handed out already, and for a LINES_FINAL right after such a \r */
};

typedef void lines_emit(void *context, const struct lines_piece *piece);

struct lines {
    char *held; /* the unfinished line; NULL when there is none */
    size_t length, room;
    bool continued; /* a part of the current line has been handed out */
    bool returned;  /* the last piece was a \r that lines_show() handed out: a \n belongs to it */
    bool runs;      /* set it once: one LINES_NEWLINE piece may hold several whole lines */
};

/* An all-zero struct is ready for use. */
void lines_clear(struct lines *lines);

void lines_add(struct lines *lines, const char *bytes, size_t length, lines_emit *emit,
               void *context);

/* Hands out what is held, as far as it can be shown. */
void lines_show(struct lines *lines, lines_emit *emit, void *context);

/* The stream has ended: hands out the rest. */
void lines_finish(struct lines *lines, lines_emit *emit, void *context);

/* Something is held that lines_show() would hand out. */
bool lines_waiting(const struct lines *lines);

/* How many bytes at the end of a text are the beginning of a UTF-8 sequence whose rest is missing:
 * 0 to 3; 0 when the end is whole, or not UTF-8. */
size_t lines_utf8_tail(const char *text, size_t length);
