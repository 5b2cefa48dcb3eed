/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the known word that is nearest to a mistyped one. The distance is the number of edits
 * (insert, drop, change, swap two neighbours). The beginning of a known word has distance 1 from
 * it.
 */
#pragma once

#include <stddef.h>

#include "base/buf.h"
#include "model/settings/option.h"

struct suggest {
    char typed[OPTION_NAME_MAX]; /* cut when longer */
    char best[OPTION_NAME_MAX];
    size_t distance;
};

void suggest_init(struct suggest *suggest, const char *typed, size_t length);
void suggest_offer(struct suggest *suggest, const char *known);

/* The best offer. NULL: none is near enough. At most a third of the typed letters may be wrong, and
 * none if there are only one or two. */
const char *suggest_best(const struct suggest *suggest);

/* Appends ": did you mean 'BEST'?", or nothing. */
void suggest_append(const struct suggest *suggest, struct buf *out);
