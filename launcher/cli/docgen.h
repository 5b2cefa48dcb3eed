/* SPDX-License-Identifier: Apache-2.0 */
/* Generates documents from the list of options at build time: man page, shell completions, table.
 */
#pragma once

#include "base/buf.h"

void docgen_man(struct buf *out);         /* hvdrun.1 */
void docgen_table(struct buf *out);       /* docs/options.md */
void docgen_coming_from(struct buf *out); /* the tables at the end of docs/coming-from.md */
void docgen_bash(struct buf *out);
void docgen_zsh(struct buf *out);
void docgen_fish(struct buf *out);

/* The generator with this name ("man", "table", "bash"...). NULL: there is none. */
typedef void docgen_function(struct buf *out);
docgen_function *docgen_find(const char *name);
