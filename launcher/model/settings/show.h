/* SPDX-License-Identifier: Apache-2.0 */
/* Makes text from outside fit for a message: one line, printable, short. Pure. */
#pragma once

#include <stddef.h>

struct text_shown {
    char text[64];
};

struct text_shown text_show(const char *text, size_t length);
