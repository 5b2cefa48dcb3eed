/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts a label in front of each whole line. This is the only work for every line of every rank, so
 * it works directly in the buffer that is written. Pure.
 */
#pragma once

#include <stddef.h>

/* Lines that wait for their label. `text` ends with a newline; it moves past the lines taken. */
struct stamp {
    const char *label;
    size_t label_length;
    const char *text;
    size_t length;
};

/* Takes as many whole lines as fit into `room` bytes at `out` with their labels; returns how many
 * bytes were put there. 0: the next line does not fit. Bytes of the room after them can have
 * changed too. */
size_t stamp_lines(struct stamp *stamp, char *out, size_t room);
