/* SPDX-License-Identifier: Apache-2.0 */
/* Blanks around text that people write: spaces, tabs and the ends of lines. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

static inline bool blank_is(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Moves both ends inwards, past the blanks; the text itself does not change. */
void blank_trim(const char **text, size_t *length);
/* The same, after it has cut off a comment: all from the first # on. */
void blank_trim_comment(const char **text, size_t *length);
