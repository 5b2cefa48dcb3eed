/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

bool text_lists(const char *words, const char *word, size_t length)
{
    while (*words != '\0' && (strcspn(words, " ") != length || memcmp(words, word, length) != 0))
        words = text_behind(words, ' ');
    return *words != '\0';
}

void text_hex(const uint8_t *bytes, size_t length, char *out)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < length; i++) {
        *out++ = digits[bytes[i] >> 4];
        *out++ = digits[bytes[i] & 15];
    }
    *out = '\0';
}

const char *text_line_after(const char *text, const char *with)
{
    while (text != NULL && !text_begins(text, with)) {
        text = strchr(text, '\n');
        text = text == NULL ? NULL : text + 1;
    }
    return text == NULL ? NULL : text + strlen(with);
}

bool text_next_line(const char **at, const char *end, const char **line, size_t *length)
{
    if (*at >= end)
        return false;
    const char *stop = memchr(*at, '\n', (size_t)(end - *at));
    *line = *at;
    *length = (size_t)((stop == NULL ? end : stop) - *at);
    *at = stop == NULL ? end : stop + 1;
    return true;
}

void text_trim(const char **text, size_t *length)
{
    for (; *length > 0 && text_is_blank(**text); --*length)
        ++*text;
    while (*length > 0 && text_is_blank((*text)[*length - 1]))
        --*length;
}

void text_trim_comment(const char **text, size_t *length)
{
    const char *comment = memchr(*text, '#', *length);
    if (comment != NULL)
        *length = (size_t)(comment - *text);
    text_trim(text, length);
}

struct text_rest text_rest_of(const char *text, size_t length)
{
    text_trim(&text, &length);
    return (struct text_rest){text, text + length};
}

size_t text_take_word(struct text_rest *rest, char stop, const char **word)
{
    *word = rest->at;
    while (rest->at < rest->end && !text_is_blank(*rest->at) && *rest->at != stop)
        rest->at++;
    size_t length = (size_t)(rest->at - *word);
    *rest = text_rest_of(rest->at, (size_t)(rest->end - rest->at));
    return length;
}

bool text_take_byte(struct text_rest *rest, char wanted)
{
    if (rest->at == rest->end || *rest->at != wanted)
        return false;
    *rest = text_rest_of(rest->at + 1, (size_t)(rest->end - rest->at - 1));
    return true;
}
