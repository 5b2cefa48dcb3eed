/* SPDX-License-Identifier: Apache-2.0 */
/* `hvdrun stacks`: where the ranks of a job are, for people and compared. */
#pragma once

#include <jansson.h>

#include "base/buf.h"

/* {"first": ..., "second": ..., "seconds": N, "moved": [RANKS], "still": [RANKS]}: the ranks whose
 * main threads have other stacks in the second answer, and those that have the same. Ranks that are
 * not in both are in neither list. The caller owns it. */
json_t *control_stacks_compare(const json_t *first, const json_t *second, double seconds);

/* The tree, without control characters. `compared` is NULL, or adds which ranks have moved. */
void control_stacks_text(const json_t *answer, const json_t *compared, struct buf *out);
