/* SPDX-License-Identifier: Apache-2.0 */
/* Texts, each of which ends with NUL: what the agent, mothers and the holder tell each other. Pure.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/strv.h"

void fields_put(struct buf *out, const char *text);
void fields_put_number(struct buf *out, uint64_t number);
void fields_put_all(struct buf *out, const struct strv *list);
void fields_put_list(struct buf *out, const struct strv *list); /* its length first */

struct field_reader { /* what is left to read */
    const char *at, *end;
};

/* Borrowed; empty if there is none, or if it does not end with NUL. */
const char *fields_next(struct field_reader *fields);
int64_t fields_next_number(struct field_reader *fields); /* -1: it is none */
void fields_next_list(struct field_reader *fields, struct strv *out);
