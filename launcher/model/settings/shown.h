/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What --ranks says: whose output the console shows. Pure.
 *
 * `none`, or a list with commas. Each entry is a rank (4), some (4-7), or all from one on (4-). An
 * `l` in front means local ranks. `:stdout` or `:stderr` behind it means only that stream.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* -1: it is not such a list, or names a rank above `max`. */
int shown_check(const char *text, int64_t max, struct error *err);

/* `text` is right; NULL shows all. `stream`: 0 is stdout, 1 stderr. */
bool shown_has(const char *text, int rank, int local_rank, int stream);
