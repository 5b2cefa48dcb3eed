/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of text. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
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

/* What is behind `with` in the first line that begins with it; NULL: none does. */
static inline const char *text_line_after(const char *text, const char *with)
{
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += line[0] == '\n';
        if (text_begins(line, with))
            return line + strlen(with);
    }
    return NULL;
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
static inline bool text_lists(const char *words, const char *word, size_t length)
{
    while (*words != '\0' && (strcspn(words, " ") != length || memcmp(words, word, length) != 0))
        words = text_behind(words, ' ');
    return *words != '\0';
}

/* Blanks around text that people write: spaces, tabs and the ends of lines. */
static inline bool blank_is(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Moves both ends inwards, past the blanks; the text itself does not change. */
static inline void blank_trim(const char **text, size_t *length)
{
    while (*length > 0 && blank_is((*text)[0])) {
        (*text)++;
        (*length)--;
    }
    while (*length > 0 && blank_is((*text)[*length - 1]))
        (*length)--;
}

/* The same, after it has cut off a comment: all from the first # on. */
static inline void blank_trim_comment(const char **text, size_t *length)
{
    const char *comment = (const char *)memchr(*text, '#', *length);
    if (comment != NULL)
        *length = (size_t)(comment - *text);
    blank_trim(text, length);
}

/* Takes a line, without its newline, from the front of the text up to `end`. False: that was all.
 */
static inline bool text_next_line(const char **at, const char *end, const char **line,
                                  size_t *length)
{
    if (*at >= end)
        return false;
    const char *stop = (const char *)memchr(*at, '\n', (size_t)(end - *at));
    *line = *at;
    *length = (size_t)((stop == NULL ? end : stop) - *at);
    *at = stop == NULL ? end : stop + 1;
    return true;
}

/* The rest of a line that is taken apart word by word. The blanks at its beginning and
 * its end are gone. */
struct text_rest {
    const char *at, *end;
};

static inline struct text_rest text_rest_of(const char *text, size_t length)
{
    blank_trim(&text, &length);
    return (struct text_rest){text, text + length};
}

/* Takes a word, which a blank or `stop` ends, and the blanks behind it. Returns its length. With a
 * blank as `stop`, only blanks end it. */
static inline size_t text_take_word(struct text_rest *rest, char stop, const char **word)
{
    *word = rest->at;
    while (rest->at < rest->end && !blank_is(*rest->at) && *rest->at != stop)
        rest->at++;
    size_t length = (size_t)(rest->at - *word);
    *rest = text_rest_of(rest->at, (size_t)(rest->end - rest->at));
    return length;
}

/* Takes this byte, if it is the next one, and the blanks behind it. */
static inline bool text_take_byte(struct text_rest *rest, char wanted)
{
    if (rest->at == rest->end || *rest->at != wanted)
        return false;
    *rest = text_rest_of(rest->at + 1, (size_t)(rest->end - rest->at - 1));
    return true;
}
