/* SPDX-License-Identifier: Apache-2.0 */
/* How an option is shown to people: its spellings, and a remark on values and default. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "model/settings/option.h"

/* Appends "-np, -n, --np, --num-proc N". `all`: also the single-dash words that exist for the sake
 * of old habits. */
void describe_spellings(enum option_id id, bool all, struct buf *out);

/* Appends "auto, local; default auto"; nothing when there is nothing to say. */
void describe_values(enum option_id id, struct buf *out);

/* Appends the default in readable form ("30 s"); nothing when the option has none. */
void describe_default(enum option_id id, struct buf *out);

/* Appends the words of an ENUM or RANK option, `between` between them. */
void describe_words(enum option_id id, const char *between, struct buf *out);
