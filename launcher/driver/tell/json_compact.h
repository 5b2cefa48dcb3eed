/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON in one line, as json_dumps() with JSON_COMPACT writes it, but in a fifth of its time: the
 * record of a job is most of what a job of a few milliseconds costs its driver at the end, and the
 * status page of a large job is mostly numbers. A number with at most six decimals, such as a time,
 * is written with these. Any other number has as many digits as it needs to stay the same.
 */
#pragma once

#include <jansson.h>

#include "base/buf.h"

/* Appends the text. -1: it does not fit, and nothing has changed. */
int json_compact(const json_t *value, struct buf *out);
