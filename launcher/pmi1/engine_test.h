/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of engine need, and nobody else. */
#pragma once

#include "pmi1/engine.h"

/* `node_of[r]` is the node of rank r. The caller owns the text. NULL when it would be longer than
 * `limit` bytes: MPICH then compares host names. */
char *mapping_text(const int *node_of, int size, int limit);
