/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of text. Pure. */
#pragma once

#include <stdbool.h>
#include <string.h>

static inline bool text_begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* What is behind the last slash of a path; the whole path if that is nothing. */
static inline const char *text_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}
