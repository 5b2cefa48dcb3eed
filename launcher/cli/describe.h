/* SPDX-License-Identifier: Apache-2.0 */
/* Texts about an option for people: its spellings, its values, its default. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "model/settings/option.h"

/* Appends "-np, -n, --np, --num-proc N". `all`: also the words with one dash that exist only for
 * compatibility. */
void describe_spellings(enum option_id id, bool all, struct buf *out);

/* Appends its help with its words and default: "... (auto, local; default auto)". */
void describe_help(enum option_id id, struct buf *out);

/* Appends the words of an ENUM or RANK option, separated by `between`. */
void describe_words(enum option_id id, const char *between, struct buf *out);
