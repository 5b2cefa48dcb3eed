/* SPDX-License-Identifier: Apache-2.0 */
/* A hostfile before it is parsed: what the parsers of all dialects are given. Pure. */
#pragma once

#include <stddef.h>

struct hostfile {
    const char *bytes;
    size_t length;
    const char *name;  /* for messages */
    const char *group; /* only the hosts of this one; NULL: all of them */
};
