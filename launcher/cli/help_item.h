/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a help text. Lines have at most 79 columns, unless a word is longer. */
#pragma once

#include "base/buf.h"

/* An option or a command on the left, what it does on the right. */
void help_item(const char *head, const char *text, struct buf *out);

void help_paragraph(const char *text, struct buf *out);
