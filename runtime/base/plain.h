/* SPDX-License-Identifier: Apache-2.0 */
/* Texts from other hosts and from programs must not control the user's terminal. */
#pragma once

#include <stddef.h>

/* Replaces each control character except newline and tab with '?', in place. It includes those that
 * are two bytes of UTF-8. log_print() does this to every line. */
void plain_text(char *text);

/* The same for a text that becomes part of a line: newlines and tabs, too, and another character
 * in their place if you like. */
void plain_line(char *text, char instead);

/* The length of the UTF-8 character that begins `text`, which has `length` bytes; 0: it is none. */
size_t plain_character(const char *text, size_t length);

/* Replaces each byte that is not part of valid UTF-8, or is NUL, by '?'. */
void plain_valid(char *text, size_t length);

/* At most `max` bytes of a text that is longer: a few less, so as not to cut a character. */
size_t plain_cut(const char *text, size_t max);

/* Makes text from outside fit for a message: one line, printable, short. */
struct plain_shown {
    char text[64];
};

struct plain_shown plain_show(const char *text, size_t length);
