/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of boot alone. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "transport/boot/boot.h"

#define PRINTABLE_ROOM 240

/* Trims blanks at both ends, replaces what is not printable ASCII or UTF-8 text by '?', and cuts
 * what does not fit. */
void printable_line(const char *bytes, size_t length, char out[PRINTABLE_ROOM]);
