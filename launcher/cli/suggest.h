/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The known word nearest to a mistyped one, by edit distance (insert, drop, change, swap two
 * neighbours). A word that is the beginning of a known one counts as one mistake away.
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

/* The best offer, NULL when none is near enough (a third of the typed letters may be
 * wrong, none of one or two). */
const char *suggest_best(const struct suggest *suggest);

/* Appends ": did you mean 'BEST'?", or nothing. */
void suggest_append(const struct suggest *suggest, struct buf *out);
