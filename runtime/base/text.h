/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of text. Pure. A text with a length need not end with a zero; what is returned is borrowed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline bool text_begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* Either may be NULL. */
static inline bool text_same(const char *one, const char *other)
{
    return one == NULL || other == NULL ? one == other : strcmp(one, other) == 0;
}

/* The first `length` bytes are just this word. */
static inline bool text_is(const char *text, size_t length, const char *word)
{
    return strlen(word) == length && memcmp(text, word, length) == 0;
}

/* What is behind the last slash of a path; the whole path if that is nothing. */
static inline const char *text_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

/* What is behind the next `end` in the text; its end if there is none. */
static inline const char *text_behind(const char *text, char end)
{
    text = strchrnul(text, end);
    return *text == '\0' ? text : text + 1;
}

/* Is `word`, which has `length` bytes, one of these words with single blanks between them? */
bool text_lists(const char *words, const char *word, size_t length);

/* Writes two hexadecimal digits for each byte, and a zero. */
void text_hex(const uint8_t *bytes, size_t length, char *out);

/* What is behind `with` in the first line that begins with it; NULL: none does. `text` itself is
 * the beginning of a line: to go on, give the end of the line that was found. */
const char *text_line_after(const char *text, const char *with);

/* Takes a line, without its newline, from the front of the text up to `end`. False: that was all.
 */
bool text_next_line(const char **at, const char *end, const char **line, size_t *length);

/* Blanks around text that people write: spaces, tabs and the ends of lines. */
static inline bool text_is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Moves both ends inwards, past the blanks; the text itself does not change. */
void text_trim(const char **text, size_t *length);
/* The same, after it has cut off a comment: all from the first # on. */
void text_trim_comment(const char **text, size_t *length);

/* The rest of a line that is taken apart word by word. The blanks at its beginning and its end are
 * gone. */
struct text_rest {
    const char *at, *end;
};

struct text_rest text_rest_of(const char *text, size_t length);
/* Takes a word, which a blank or `stop` ends, and the blanks behind it. Returns its length. With a
 * blank as `stop`, only blanks end it. */
size_t text_take_word(struct text_rest *rest, char stop, const char **word);
/* Takes this byte, if it is the next one, and the blanks behind it. */
bool text_take_byte(struct text_rest *rest, char wanted);
