/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes what a host has printed fit for one line of a message: control characters could do anything
 * to the user's terminal.
 */
#pragma once

#include <stddef.h>

#define PRINTABLE_ROOM 240

/* Trims blanks at both ends, replaces what is not printable ASCII or UTF-8 text by '?', and cuts
 * what does not fit. */
void printable_line(const char *bytes, size_t length, char out[PRINTABLE_ROOM]);
