/* SPDX-License-Identifier: Apache-2.0 */
/* The last lines of a stream, kept for the report. Pure; allocated with the first byte.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

#define TAIL_LINES 20
#define TAIL_BYTES 2048

struct tail {
    struct buf recent; /* an all-zero struct is ready for use */
    bool cut;          /* older bytes are gone, so `recent` may begin inside a character */
    char *text;        /* what tail_text() made */
};

void tail_destroy(struct tail *tail);
void tail_add(struct tail *tail, const void *bytes, size_t length);

/* At most TAIL_LINES lines in at most TAIL_BYTES bytes, without a newline at the end; a line that
 * does not fit is cut at its front. Valid UTF-8 without NUL: other bytes are shown as '?'. Never
 * NULL; borrowed until the next call with this tail. */
const char *tail_text(struct tail *tail);
