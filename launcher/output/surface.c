/* SPDX-License-Identifier: Apache-2.0 */
#include "output/surface.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* Labels in front of whole lines. */

/* A copy whose length the compiler knows is a few instructions, so short labels are copied with
 * what stands behind them, and the line goes over that. */
#define SHORT 32

struct padded_label {
    const char *bytes;
    size_t length;
    char padded[SHORT];
};

/* The surface. */

static void put_label(char *out, const struct padded_label *label)
{
    if (label->length <= SHORT)
        memcpy(out, label->padded, SHORT);
    else
        memcpy(out, label->bytes, label->length);
}

size_t stamp_lines(struct stamp *stamp, char *out, size_t room)
{
    struct padded_label label = {stamp->label, stamp->label_length, ""};
    if (label.length > 0 && label.length <= SHORT)
        memcpy(label.padded, label.bytes, label.length);
    const char *at = stamp->text, *end = at + stamp->length;
    char *to = out, *limit = out + room;
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t line = (size_t)((newline != NULL ? newline + 1 : end) - at);
        size_t left = (size_t)(limit - to);
        if (left < SHORT || left - SHORT < label.length + line)
            break;
        put_label(to, &label);
        memcpy(to + label.length, at, line);
        to += label.length + line;
        at += line;
    }
    stamp->length = (size_t)(end - at);
    stamp->text = at;
    return (size_t)(to - out);
}

#define ERASE_LINE "\r\033[K"

enum open { CLOSED, PARTIAL, BAR };

struct surface {
    struct surface_config config;
    enum open open;  /* the kind of unfinished text on the last line */
    int owner;       /* whose it is */
    int last_stream; /* where it was written */
    char *progress;  /* owned; NULL: none */
    int progress_stream;
    bool progress_shown;
};

struct surface *surface_create(const struct surface_config *config)
{
    struct surface *surface = mem_alloc(sizeof(*surface));
    surface->config = *config;
    return surface;
}

void surface_destroy(struct surface *surface)
{
    if (surface == NULL)
        return;
    free(surface->progress);
    free(surface);
}

static void put(struct surface *surface, int stream, const char *bytes, size_t length)
{
    if (length > 0)
        surface->config.append(surface->config.context, stream, bytes, length);
}

static void put_text(struct surface *surface, int stream, const char *text)
{
    put(surface, stream, text, strlen(text));
}

static void put_newline(struct surface *surface, int stream)
{
    put_text(surface, stream, surface->config.crlf ? "\r\n" : "\n");
}

static void set_open(struct surface *surface, enum open open, int owner, int stream)
{
    surface->open = open;
    surface->owner = owner;
    surface->last_stream = stream;
}

static void hide_progress(struct surface *surface)
{
    if (surface->progress_shown)
        put_text(surface, surface->progress_stream, ERASE_LINE);
    surface->progress_shown = false;
}

/* Ends the unfinished line of another owner. The newline goes where the unfinished text went: the
 * two streams of one terminal are one surface, but may be redirected apart by a later reader. */
static void close_open(struct surface *surface)
{
    hide_progress(surface);
    if (surface->open == PARTIAL)
        put_newline(surface, surface->last_stream);
    else if (surface->open == BAR)
        put_text(surface, surface->last_stream, ERASE_LINE);
    surface->open = CLOSED;
}

/* How many bytes fit into `columns`; `used` is the number of columns that they take. */
static size_t fit(const char *text, size_t length, int columns, int *used)
{
    size_t at = 0;
    *used = 0;
    while (at < length) {
        if (text[at] == '\033' && at + 1 < length && text[at + 1] == '[') {
            at += 2;
            while (at < length && (text[at] < '@' || text[at] > '~'))
                at++;
            at += at < length;
            continue;
        }
        if (*used >= columns)
            break;
        ++*used;
        at++;
        while (at < length && ((unsigned char)text[at] & 0xC0) == 0x80)
            at++;
    }
    return at;
}

size_t surface_fit(const char *text, size_t length, int columns)
{
    int used;
    return fit(text, length, columns, &used);
}

/* A line that is rewritten must not wrap: erasing reaches the last row only. */
static size_t fit_line(const struct surface *surface, size_t label_length, const char *label,
                       const char *text, size_t length)
{
    int columns =
        surface->config.columns != NULL ? surface->config.columns(surface->config.context) : 0;
    if (columns <= 1)
        return length;
    int used;
    fit(label, label_length, columns - 1, &used);
    return surface_fit(text, length, columns - 1 - used);
}

/* The piece without the \r and \n that end its line. */
static size_t body_length(const struct lines_piece *piece)
{
    size_t length = piece->length;
    if (piece->end == LINES_PART)
        return length;
    if (piece->end == LINES_NEWLINE)
        length--;
    while (length > 0 && piece->text[length - 1] == '\r')
        length--;
    return length;
}

/* A piece that is only the end of a line whose text came before. */
static void end_earlier(struct surface *surface, int stream, int owner,
                        const struct lines_piece *piece)
{
    if (surface->open == CLOSED || surface->owner != owner)
        return; /* another owner has ended it already */
    if (piece->end == LINES_RETURN && surface->config.live) {
        surface->open = BAR;
        return;
    }
    put_newline(surface, stream);
    surface->open = CLOSED;
}

static void slow_piece(struct surface *surface, int stream, int owner, const char *label,
                       size_t label_length, const struct lines_piece *piece)
{
    size_t body = body_length(piece);
    if (body == 0 && (piece->continued || piece->end != LINES_NEWLINE)) {
        end_earlier(surface, stream, owner, piece);
        return;
    }
    hide_progress(surface);
    bool goes_on = surface->open == PARTIAL && surface->owner == owner && piece->continued;
    if (!goes_on) {
        close_open(surface);
        put(surface, stream, label, label_length);
        if (piece->continued && label_length > 0)
            put_text(surface, stream, SURFACE_CONTINUED);
    }
    bool bar = piece->end == LINES_RETURN && surface->config.live;
    size_t shown = bar ? fit_line(surface, label_length, label, piece->text, body) : body;
    put(surface, stream, piece->text, shown);
    if (piece->end == LINES_PART || bar) {
        set_open(surface, bar ? BAR : PARTIAL, owner, stream);
        return;
    }
    if (piece->end == LINES_NEWLINE && !surface->config.crlf)
        put(surface, stream, piece->text + body, piece->length - body);
    else
        put_newline(surface, stream);
    surface->open = CLOSED;
}

/* Whole lines, when there is no unfinished one. */
static bool can_append(const struct surface *surface, const struct lines_piece *piece)
{
    return piece->end == LINES_NEWLINE && !piece->continued && surface->open == CLOSED &&
           !surface->progress_shown && !surface->config.crlf;
}

static size_t first_line(const struct lines_piece *piece)
{
    const char *newline =
        piece->end == LINES_NEWLINE ? memchr(piece->text, '\n', piece->length) : NULL;
    return newline != NULL ? (size_t)(newline + 1 - piece->text) : piece->length;
}

void surface_piece(struct surface *surface, int stream, int owner, const char *label,
                   size_t label_length, const struct lines_piece *piece)
{
    if (surface->config.bytes) {
        surface_raw(surface, stream, owner, piece->text, piece->length);
        return;
    }
    struct lines_piece rest = *piece;
    while (!can_append(surface, &rest)) {
        struct lines_piece one = rest;
        one.length = first_line(&rest);
        slow_piece(surface, stream, owner, label, label_length, &one);
        if (one.length == rest.length)
            return;
        rest.text += one.length;
        rest.length -= one.length;
        rest.continued = false;
    }
    struct stamp lines = {label, label_length, rest.text, rest.length};
    if (label_length == 0)
        put(surface, stream, rest.text, rest.length);
    else
        surface->config.append_lines(surface->config.context, stream, &lines);
}

void surface_raw(struct surface *surface, int stream, int owner, const char *bytes, size_t length)
{
    if (length == 0)
        return;
    if (surface->open == CLOSED || surface->owner != owner)
        close_open(surface);
    hide_progress(surface);
    put(surface, stream, bytes, length);
    set_open(surface, bytes[length - 1] == '\n' ? CLOSED : PARTIAL, owner, stream);
}

void surface_leave(struct surface *surface, int owner)
{
    if (surface->owner == owner)
        surface->owner = -1;
}

void surface_text(struct surface *surface, int stream, const char *text, size_t length)
{
    close_open(surface);
    while (length > 0) {
        const char *newline = memchr(text, '\n', length);
        size_t line = newline != NULL ? (size_t)(newline - text) : length;
        put(surface, stream, text, line);
        put_newline(surface, stream);
        line += newline != NULL;
        text += line;
        length -= line;
    }
}

void surface_progress(struct surface *surface, int stream, const char *text)
{
    if (!surface->config.live)
        return;
    if (text != NULL && surface->progress != NULL && strcmp(text, surface->progress) == 0)
        return;
    hide_progress(surface);
    mem_replace(&surface->progress, text);
    surface->progress_stream = stream;
}

void surface_settle(struct surface *surface)
{
    if (surface->progress == NULL || surface->progress_shown || surface->open != CLOSED)
        return;
    size_t length = strcspn(surface->progress, "\r\n");
    put(surface, surface->progress_stream, surface->progress,
        fit_line(surface, 0, "", surface->progress, length));
    surface->progress_shown = true;
}

void surface_finish(struct surface *surface)
{
    hide_progress(surface);
    free(surface->progress);
    surface->progress = NULL;
    if (surface->open == BAR || (surface->open == PARTIAL && !surface->config.bytes))
        put_newline(surface, surface->last_stream);
    surface->open = CLOSED;
}
