/* SPDX-License-Identifier: Apache-2.0 */
/* Generates documents from the list of options at build time: man page, shell completions, tables.
 */
#pragma once

#include "base/buf.h"

typedef void docgen_function(struct buf *out);

/* The generator with this name ("man", "table", "bash"...). NULL: there is none. */
docgen_function *docgen_find(const char *name);
