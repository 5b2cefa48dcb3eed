/* SPDX-License-Identifier: Apache-2.0 */
/* Text from outside as an error may repeat it: one line, printable, short. Pure. */
#pragma once

#include <stddef.h>

struct host_shown {
    char text[64];
};

struct host_shown host_show(const char *text, size_t length);
