/* SPDX-License-Identifier: Apache-2.0 */
/* A command that a user has given as one text, split into words: quotes and backslashes as a shell
 * would, nothing expanded; no shell ever sees it (D14). Pure. */
#pragma once

#include "base/error.h"
#include "base/strv.h"

/* Appends the words. -1 and STATUS_USAGE: a quote or backslash without its end, nothing at all, or
 * too long. */
int words_split(const char *text, struct strv *words, struct error *err);
