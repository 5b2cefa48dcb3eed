/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PyTorch's flight recorder: a list of the last collectives of a rank, in its memory. The rank
 * writes it into a file when somebody writes a byte into its FIFO. Variables say where both are.
 * Pure.
 *
 * Some variables have an older name. PyTorch prefers the new one, and newer versions warn on each
 * rank about the old one. So only new names are set here, and old ones are understood. Versions
 * that know old names only record nothing unless the user sets these.
 */
#pragma once

#include <stddef.h>

#include "base/strv.h"

#define FLIGHT_RECORDER_ENTRIES 2000 /* about 0.3 MB in the file */

/* `items`: "NAME=value", or NULL, of a worker. `folder` must be there when the worker starts:
 * PyTorch ends a process that cannot make its FIFO. Appends the variables that the user has
 * set under no name. */
void flight_recorder_arm(char *const *items, size_t count, const char *folder, struct strv *out);

struct flight_places {
    char *pipe, *dump; /* paths */
};

/* From the environment of a process, as the kernel has it. -1: it has no FIFO, or no rank. The
 * caller clears `out`. */
int flight_recorder_places(const char *environ, size_t length, struct flight_places *out);
void flight_places_clear(struct flight_places *places);
