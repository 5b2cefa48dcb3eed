/* SPDX-License-Identifier: Apache-2.0 */
/* Names in paths. Pure. */
#pragma once

#include <string.h>

/* What is behind the last slash; the whole path if that is nothing. */
static inline const char *path_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}
