/* SPDX-License-Identifier: Apache-2.0 */
/* The generators that docgen.c lists. */
#pragma once

#include "base/buf.h"

void docgen_man(struct buf *out);         /* hvdrun.1 */
void docgen_table(struct buf *out);       /* docs/options.md */
void docgen_coming_from(struct buf *out); /* the tables at the end of docs/coming-from.md */
void docgen_bash(struct buf *out);
void docgen_zsh(struct buf *out);
void docgen_fish(struct buf *out);
