/* SPDX-License-Identifier: Apache-2.0 */
/* Splits a command that a user gave as one text into words. Quotes and backslashes work as in a
 * shell; nothing is expanded, and no shell ever sees it (D14). Pure. */
#pragma once

#include "base/error.h"
#include "base/strv.h"

/* Appends the words. -1 and STATUS_USAGE: a quote or backslash without its end, nothing at all, or
 * too long. */
int words_split(const char *text, struct strv *words, struct error *err);
